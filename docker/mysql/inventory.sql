-- The tutorial's inventory, for MySQL.
-- The image runs this once, as root, in the database of MYSQL_DATABASE, when the data directory is empty.

CREATE TABLE customers (
    id         INTEGER NOT NULL AUTO_INCREMENT PRIMARY KEY,
    first_name VARCHAR(255) NOT NULL,
    last_name  VARCHAR(255) NOT NULL,
    email      VARCHAR(255) NOT NULL UNIQUE KEY
) AUTO_INCREMENT = 1001;

CREATE TABLE addresses (
    id          INTEGER NOT NULL AUTO_INCREMENT PRIMARY KEY,
    customer_id INTEGER NOT NULL,
    street      VARCHAR(255) NOT NULL,
    city        VARCHAR(255) NOT NULL,
    state       VARCHAR(255) NOT NULL,
    zip         VARCHAR(255) NOT NULL,
    type        ENUM ('SHIPPING', 'BILLING', 'LIVING') NOT NULL,
    FOREIGN KEY (customer_id) REFERENCES customers (id)
) AUTO_INCREMENT = 10;

CREATE TABLE products (
    id          INTEGER NOT NULL AUTO_INCREMENT PRIMARY KEY,
    name        VARCHAR(255) NOT NULL,
    description VARCHAR(512),
    weight      FLOAT
) AUTO_INCREMENT = 101;

CREATE TABLE products_on_hand (
    product_id INTEGER NOT NULL PRIMARY KEY,
    quantity   INTEGER NOT NULL,
    FOREIGN KEY (product_id) REFERENCES products (id)
);

CREATE TABLE orders (
    order_number INTEGER NOT NULL AUTO_INCREMENT PRIMARY KEY,
    order_date   DATE NOT NULL,
    purchaser    INTEGER NOT NULL,
    quantity     INTEGER NOT NULL,
    product_id   INTEGER NOT NULL,
    FOREIGN KEY (purchaser) REFERENCES customers (id),
    FOREIGN KEY (product_id) REFERENCES products (id)
) AUTO_INCREMENT = 10001;

CREATE TABLE geom (
    id INTEGER NOT NULL AUTO_INCREMENT PRIMARY KEY,
    g  GEOMETRY NOT NULL,
    h  GEOMETRY
);

INSERT INTO customers (first_name, last_name, email) VALUES
    ('Sally', 'Thomas', 'sally.thomas@acme.com'),
    ('George', 'Bailey', 'gbailey@foobar.com'),
    ('Edward', 'Walker', 'ed@walker.com'),
    ('Anne', 'Kretchmar', 'annek@noanswer.org');

INSERT INTO addresses (customer_id, street, city, state, zip, type) VALUES
    (1001, '12 Harbour Lane', 'Portland', 'Maine', '04101', 'SHIPPING'),
    (1001, '12 Harbour Lane', 'Portland', 'Maine', '04101', 'BILLING'),
    (1002, '320 Sycamore Street', 'Bedford Falls', 'New York', '13148', 'LIVING'),
    (1003, '7 Mill Road', 'Burlington', 'Vermont', '05401', 'SHIPPING'),
    (1004, '88 Castle Hill', 'Santa Fe', 'New Mexico', '87501', 'LIVING');

INSERT INTO products (name, description, weight) VALUES
    ('scooter', 'Folding scooter with two wheels', 3.14),
    ('car battery', 'Battery for cars, 12 volts', 8.1),
    ('drill bits', 'Twelve bits from 1 to 12 mm', 0.8),
    ('hammer', 'Carpenter''s hammer, light', 0.75),
    ('hammer', 'Carpenter''s hammer, medium', 0.875),
    ('hammer', 'Carpenter''s hammer, heavy', 1.0),
    ('rocks', 'A box of stones of many kinds', 5.3),
    ('jacket', 'Black wind breaker, water resistant', 0.1),
    ('spare tire', 'Spare tyre, 24 inches', 22.2);

INSERT INTO products_on_hand (product_id, quantity) VALUES
    (101, 3), (102, 8), (103, 18), (104, 4), (105, 5), (106, 0), (107, 44), (108, 2), (109, 5);

INSERT INTO orders (order_date, purchaser, quantity, product_id) VALUES
    ('2024-01-16', 1001, 1, 102),
    ('2024-01-17', 1002, 2, 105),
    ('2024-02-19', 1002, 2, 106),
    ('2024-02-21', 1003, 1, 107);

INSERT INTO geom (g, h) VALUES
    (ST_GeomFromText('POINT(1 1)'), NULL),
    (ST_GeomFromText('LINESTRING(2 1, 6 6)'), NULL),
    (ST_GeomFromText('POLYGON((0 5, 2 5, 2 7, 0 7, 0 5))'), ST_GeomFromText('POINT(3 3)'));

-- What a connector needs: read the tables, read the binary log, hold a read lock for a moment at the start of a snapshot.
CREATE USER 'debezium'@'%' IDENTIFIED BY 'dbz';
GRANT SELECT, RELOAD, SHOW DATABASES, LOCK TABLES, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'debezium'@'%';
