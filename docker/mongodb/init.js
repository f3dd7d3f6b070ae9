// Makes the replica set of one (change streams need a replica set) and loads the tutorial's inventory. May run any number of times.
try {
  rs.status();
} catch (error) {
  if (error.codeName !== "NotYetInitialized") throw error;
  rs.initiate({ _id: "rs0", members: [{ _id: 0, host: "mongodb:27017" }] });
}
for (let i = 0; !db.hello().isWritablePrimary; i++) {
  if (i === 60) throw new Error("The replica set has no primary after 60 seconds.");
  sleep(1000);
}

const inventory = db.getSiblingDB("inventory");
const load = (collection, documents) => {
  for (const document of documents) inventory[collection].replaceOne({ _id: document._id }, document, { upsert: true });
};
if (inventory.customers.countDocuments({}) === 0) {
  load("products", [
    { _id: NumberLong("101"), name: "scooter", description: "Folding scooter with two wheels", weight: 3.14, quantity: NumberInt("3") },
    { _id: NumberLong("102"), name: "car battery", description: "Battery for cars, 12 volts", weight: 8.1, quantity: NumberInt("8") },
    { _id: NumberLong("103"), name: "drill bits", description: "Twelve bits from 1 to 12 mm", weight: 0.8, quantity: NumberInt("18") },
    { _id: NumberLong("104"), name: "hammer", description: "Carpenter's hammer, light", weight: 0.75, quantity: NumberInt("4") },
    { _id: NumberLong("105"), name: "hammer", description: "Carpenter's hammer, medium", weight: 0.875, quantity: NumberInt("5") },
  ]);
  load("orders", [
    { _id: NumberLong("10001"), order_date: ISODate("2024-01-16T00:00:00Z"), purchaser_id: NumberLong("1001"), quantity: NumberInt("1"), product_id: NumberLong("102") },
    { _id: NumberLong("10002"), order_date: ISODate("2024-01-17T00:00:00Z"), purchaser_id: NumberLong("1002"), quantity: NumberInt("2"), product_id: NumberLong("105") },
  ]);
  load("customers", [
    { _id: NumberLong("1001"), first_name: "Sally", last_name: "Thomas", email: "sally.thomas@acme.com" },
    { _id: NumberLong("1002"), first_name: "George", last_name: "Bailey", email: "gbailey@foobar.com" },
    { _id: NumberLong("1003"), first_name: "Edward", last_name: "Walker", email: "ed@walker.com" },
    { _id: NumberLong("1004"), first_name: "Anne", last_name: "Kretchmar", email: "annek@noanswer.org" },
  ]);
}
