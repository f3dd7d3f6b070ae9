import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.Cursor;
import de.bwaldvogel.mongo.backend.aggregation.Aggregation;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import de.bwaldvogel.mongo.bson.BinData;
import de.bwaldvogel.mongo.bson.BsonTimestamp;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.exception.MongoServerError;
import de.bwaldvogel.mongo.oplog.Oplog;
import io.netty.channel.Channel;
import java.net.InetSocketAddress;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What tests use where no MongoDB is installed: mongo-java-server's collections in memory, dressed as a replica set of one member, with a log
 * of changes of its own and change streams over it. Started by `connect_py.app.services.mongo` with the port as argument.
 *
 * Differences from a server: no transaction can be undone, no event is split, invalidated or too large, binary ids cannot be compared by
 * `$gt`. The command `forgetLog` (not MongoDB's) drops the log, as a server does whose log is full: places in it are then lost.
 */
public final class ReplicaSet extends MemoryBackend {
    private static final String NAME = "rs0";

    private final String address;
    private final Log log = new Log();
    private final Map<Long, Stream> streams = new ConcurrentHashMap<>();
    private long lastStream = 1L << 32;

    private ReplicaSet(String address) {
        this.address = address;
    }

    public static void main(String[] arguments) {
        int port = Integer.parseInt(arguments[0]);
        MongoServer server = new MongoServer(new ReplicaSet("127.0.0.1:" + port));
        server.enableOplog();
        server.bind(new InetSocketAddress("127.0.0.1", port));
    }

    @Override
    protected Oplog createOplog() {
        return log;
    }

    @Override
    public Document handleCommand(Channel channel, String database, String command, Document query) {
        Stream stream = command.equals("getMore") ? streams.get(query.get("getMore")) : null;
        Document answer = stream != null ? stream.await(query) : log.guarded(() -> run(channel, database, command, query));
        BsonTimestamp now = log.now();
        Document signature = new Document("hash", new BinData(new byte[20])).append("keyId", 0L);
        return answer.append("operationTime", now).append("$clusterTime", new Document("clusterTime", now).append("signature", signature));
    }

    private Document run(Channel channel, String database, String command, Document query) {
        switch (command) {
            case "hello", "isMaster", "ismaster":
                return hello(command);
            case "buildInfo", "buildinfo":
                return new Document("version", "7.0.0").append("versionArray", List.of(7, 0, 0, 0)).append("bits", 64)
                    .append("maxBsonObjectSize", 16 << 20).append("ok", 1.0);
            case "forgetLog":
                log.forget();
                return new Document("ok", 1.0);
            case "commitTransaction":
                log.commit(session(query));
                return new Document("ok", 1.0);
            case "abortTransaction":
                if (log.hasOpen(session(query))) {
                    throw new MongoServerError(263, "OperationNotSupportedInTransaction", "this server cannot undo what a transaction wrote");
                }
                return new Document("ok", 1.0);
            case "collMod":
                log.setImages(database + "." + query.get("collMod"), query);
                return new Document("ok", 1.0);
            case "create":
                log.setImages(database + "." + query.get("create"), query);
                break;
            case "killCursors":
                ((List<?>) query.get("cursors")).forEach(streams::remove);
                break;
            case "aggregate":
                List<Document> stages = Aggregation.parse(query.get("pipeline"));
                if (!stages.isEmpty() && stages.get(0).containsKey("$changeStream")) {
                    return open(database, query, stages);
                }
                break;
            default:
        }
        if (!Boolean.FALSE.equals(query.get("autocommit"))) {
            return super.handleCommand(channel, database, command, query);
        }
        log.transaction = query;
        try {
            return super.handleCommand(channel, database, command, query);
        } finally {
            log.transaction = null;
        }
    }

    private Document hello(String command) {
        return new Document(command.equals("hello") ? "isWritablePrimary" : "ismaster", true).append("helloOk", true)
            .append("secondary", false).append("setName", NAME).append("setVersion", 1).append("hosts", List.of(address))
            .append("primary", address).append("me", address).append("localTime", Instant.now()).append("connectionId", 1)
            .append("logicalSessionTimeoutMinutes", 30).append("maxBsonObjectSize", 16 << 20).append("maxMessageSizeBytes", 48_000_000)
            .append("maxWriteBatchSize", 100_000).append("minWireVersion", 0).append("maxWireVersion", 21).append("readOnly", false)
            .append("ok", 1.0);
    }

    private static String session(Document query) {
        return String.valueOf(query.get("lsid"));
    }

    private Document open(String database, Document query, List<Document> stages) {
        Document options = (Document) stages.get(0).get("$changeStream");
        List<Document> rest = new ArrayList<>(stages.subList(1, stages.size()));
        rest.removeIf(stage -> stage.containsKey("$changeStreamSplitLargeEvent"));
        Aggregation pipeline = Aggregation.fromPipeline(rest, this::resolveDatabase, resolveDatabase(database), null, log);
        String collection = query.get("aggregate") instanceof String name ? name : null;
        boolean everything = Boolean.TRUE.equals(options.get("allChangesForCluster"));
        Stream stream = new Stream(++lastStream, everything ? null : database, collection, options, pipeline);
        streams.put(stream.id, stream);
        Number size = (Number) ((Document) query.get("cursor")).getOrDefault("batchSize", 101);
        return stream.answer("firstBatch", size.intValue());
    }

    /** One change; `before` is there only where the collection keeps images. */
    private record Change(long time, Instant wall, String operation, String database, String collection, Object id, Document before,
                          Document after, Document image, Document description, Document lsid, Object number) {
        Change at(long newTime) {
            return new Change(newTime, wall, operation, database, collection, id, before, after, image, description, lsid, number);
        }
    }

    /** Changes in their order, and each document as it is now, to tell what an update changed. All access is guarded by the log itself. */
    private static final class Log implements Oplog {
        final List<Change> changes = new ArrayList<>();
        final Map<String, Map<Object, Document>> present = new HashMap<>();
        final Map<String, List<Change>> open = new HashMap<>();
        final Set<String> keepsImages = new HashSet<>();
        long last = Instant.now().getEpochSecond() << 32;
        long forgotten = last;
        Document transaction;

        synchronized Document guarded(java.util.function.Supplier<Document> action) {
            try {
                return action.get();
            } finally {
                notifyAll();
            }
        }

        synchronized BsonTimestamp now() {
            return new BsonTimestamp(last);
        }

        synchronized void forget() {
            changes.clear();
            forgotten = last = tick();
        }

        boolean hasOpen(String session) {
            return !open.getOrDefault(session, List.of()).isEmpty();
        }

        void commit(String session) {
            List<Change> done = open.remove(session);
            if (done != null) {
                done.forEach(change -> changes.add(change.at(tick())));
            }
        }

        void setImages(String namespace, Document query) {
            if (query.get("changeStreamPreAndPostImages") instanceof Document option) {
                boolean wanted = Boolean.TRUE.equals(option.get("enabled"));
                boolean ignored = wanted ? keepsImages.add(namespace) : keepsImages.remove(namespace);
            }
        }

        /** A new cluster time: seconds and a counter. */
        long tick() {
            last = Math.max(last + 1, (Instant.now().getEpochSecond() << 32) | 1);
            return last;
        }

        private void add(String operation, String namespace, Object id, Document before, Document after, Document description) {
            String[] names = namespace.split("\\.", 2);
            if (names[0].equals("local") || names[1].startsWith("system.")) {
                return;
            }
            boolean images = keepsImages.contains(namespace);
            Document lsid = null;
            Object number = null;
            if (transaction != null) {
                lsid = ((Document) transaction.get("lsid")).cloneDeeply().append("uid", new BinData(new byte[32]));
                number = transaction.get("txnNumber");
            }
            Change change = new Change(0, Instant.now(), operation, names[0], names[1], id, images ? before : null,
                operation.equals("update") ? null : after, images ? after : null, description, lsid, number);
            if (transaction != null) {
                open.computeIfAbsent(session(transaction), session -> new ArrayList<>()).add(change);
            } else {
                changes.add(change.at(tick()));
            }
        }

        private Map<Object, Document> documents(String namespace) {
            return present.computeIfAbsent(namespace, name -> new HashMap<>());
        }

        Document lookUp(Change change) {
            Document found = documents(change.database + "." + change.collection).get(change.id);
            return found == null ? null : found.cloneDeeply();
        }

        Document stored(String namespace, Object id) {
            return documents(namespace).get(id);
        }

        @Override
        public void handleInsert(String namespace, List<Document> inserted) {
            for (Document document : inserted) {
                Document copy = document.cloneDeeply();
                documents(namespace).put(copy.get("_id"), copy);
                add("insert", namespace, copy.get("_id"), null, copy, null);
            }
        }

        @Override
        public void handleUpdate(String namespace, Document selector, Document update, List<Object> ids) {
            boolean replaces = update.keySet().stream().noneMatch(name -> name.startsWith("$"));
            for (Object id : ids) {
                Document before = stored(namespace, id);
                Document after = read.apply(namespace, id).cloneDeeply();
                documents(namespace).put(id, after);
                add(replaces ? "replace" : "update", namespace, id, before, after, replaces ? null : Description.of(before, after));
            }
        }

        @Override
        public void handleDelete(String namespace, Document query, List<Object> ids) {
            for (Object id : ids) {
                add("delete", namespace, id, documents(namespace).remove(id), null, null);
            }
        }

        @Override
        public void handleDropCollection(String namespace) {
            present.remove(namespace);
            keepsImages.remove(namespace);
            add("drop", namespace, null, null, null, null);
        }

        @Override
        public Cursor createCursor(Document options, String namespace, Aggregation aggregation) {
            throw new UnsupportedOperationException("change streams are opened by ReplicaSet.open");
        }

        java.util.function.BiFunction<String, Object, Document> read;
    }

    {
        log.read = (namespace, id) -> {
            String[] names = namespace.split("\\.", 2);
            return resolveDatabase(names[0]).resolveCollection(names[1], true).handleQueryAsStream(new Document("_id", id))
                .filter(document -> Objects.equals(document.get("_id"), id)).findFirst().orElseThrow();
        };
    }

    /** An open change stream. */
    private final class Stream {
        final long id;
        final String database;
        final String collection;
        final Document options;
        final Aggregation pipeline;
        long place;

        Stream(long id, String database, String collection, Document options, Aggregation pipeline) {
            this.id = id;
            this.database = database;
            this.collection = collection;
            this.options = options;
            this.pipeline = pipeline;
            this.place = start();
        }

        private long start() {
            if (options.get("startAtOperationTime") instanceof BsonTimestamp time) {
                return known(time.getValue() - 1);
            }
            Document token = (Document) options.getOrDefault("resumeAfter", options.get("startAfter"));
            if (token == null) {
                return log.last;
            }
            try {
                return known(Long.parseUnsignedLong(String.valueOf(token.get("_data")).substring(2, 18), 16));
            } catch (NumberFormatException | StringIndexOutOfBoundsException e) {
                throw new MongoServerError(9, "FailedToParse", "the resume token is none of this server");
            }
        }

        private long known(long time) {
            if (time < log.forgotten || time > log.last) {
                throw new MongoServerError(286, "ChangeStreamHistoryLost", "the resume point may no longer be in the log");
            }
            return time;
        }

        Document await(Document query) {
            long end = System.nanoTime() + ((Number) query.getOrDefault("maxTimeMS", 1000)).longValue() * 1_000_000;
            int size = ((Number) query.getOrDefault("batchSize", 0)).intValue();
            synchronized (log) {
                while (true) {
                    Document answer = answer("nextBatch", size == 0 ? Integer.MAX_VALUE : size);
                    long left = (end - System.nanoTime()) / 1_000_000;
                    if (left <= 0 || !streams.containsKey(id) || !((List<?>) ((Document) answer.get("cursor")).get("nextBatch")).isEmpty()) {
                        return answer;
                    }
                    try {
                        log.wait(left);
                    } catch (InterruptedException e) {
                        return answer;
                    }
                }
            }
        }

        Document answer(String label, int size) {
            List<Document> batch = new ArrayList<>();
            int at = firstBehind();
            for (; at < log.changes.size() && batch.size() < size; at++) {
                Change change = log.changes.get(at);
                place = change.time;
                boolean watched = (database == null || database.equals(change.database)) && (collection == null || collection.equals(change.collection));
                if (watched) {
                    batch.addAll(pipeline.runStages(List.of(event(change)).stream()));
                }
            }
            if (at == log.changes.size()) {
                place = log.last;
            }
            Document cursor = new Document(label, batch).append("postBatchResumeToken", token(place)).append("id", id)
                .append("ns", (database == null ? "admin" : database) + "." + (collection == null ? "$cmd.aggregate" : collection));
            return new Document("cursor", cursor).append("ok", 1.0);
        }

        private int firstBehind() {
            int low = 0;
            int high = log.changes.size();
            while (low < high) {
                int middle = (low + high) >>> 1;
                if (log.changes.get(middle).time <= place) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            return low;
        }

        private Document token(long time) {
            return new Document("_data", String.format("82%016X2B0229296E04", time));
        }

        private Document event(Change change) {
            Document event = new Document("_id", token(change.time)).append("operationType", change.operation)
                .append("clusterTime", new BsonTimestamp(change.time)).append("wallTime", change.wall);
            if (change.lsid != null) {
                event.append("lsid", change.lsid).append("txnNumber", change.number);
            }
            Object full = options.getOrDefault("fullDocument", "default");
            if (change.operation.equals("update") && full.equals("updateLookup")) {
                event.append("fullDocument", log.lookUp(change));
            } else if (change.operation.equals("update") && !full.equals("default")) {
                event.append("fullDocument", change.image);
            } else if (change.after != null) {
                event.append("fullDocument", change.after);
            }
            event.append("ns", new Document("db", change.database).append("coll", change.collection));
            if (!change.operation.equals("drop")) {
                event.append("documentKey", new Document("_id", change.id));
            }
            if (change.description != null) {
                event.append("updateDescription", change.description);
            }
            boolean hadDocument = !change.operation.equals("insert") && !change.operation.equals("drop");
            if (hadDocument && !options.getOrDefault("fullDocumentBeforeChange", "off").equals("off")) {
                event.append("fullDocumentBeforeChange", change.before);
            }
            return event.cloneDeeply();
        }
    }

    /** What an update changed, as `updateDescription` says it. */
    private static final class Description {
        private final Document updated = new Document();
        private final List<Object> removed = new ArrayList<>();
        private final List<Object> truncated = new ArrayList<>();

        static Document of(Document before, Document after) {
            Description found = new Description();
            found.documents("", before, after);
            return new Document("updatedFields", found.updated).append("removedFields", found.removed).append("truncatedArrays", found.truncated);
        }

        private void documents(String path, Document before, Document after) {
            for (String name : before.keySet()) {
                if (!after.containsKey(name)) {
                    removed.add(path + name);
                }
            }
            after.forEach((name, value) -> {
                if (before.containsKey(name)) {
                    values(path + name, before.get(name), value);
                } else {
                    updated.append(path + name, value);
                }
            });
        }

        private void values(String path, Object before, Object after) {
            if (before instanceof Document old && after instanceof Document now) {
                documents(path + ".", old, now);
            } else if (before instanceof List<?> old && after instanceof List<?> now) {
                if (now.size() < old.size()) {
                    truncated.add(new Document("field", path).append("newSize", now.size()));
                }
                for (int i = 0; i < now.size(); i++) {
                    if (i < old.size()) {
                        values(path + "." + i, old.get(i), now.get(i));
                    } else {
                        updated.append(path + "." + i, now.get(i));
                    }
                }
            } else if (!Objects.equals(before, after)) {
                updated.append(path, after);
            }
        }
    }
}
