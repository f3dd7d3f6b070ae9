package org.apache.kafka.connect.runtime.distributed;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.connect.runtime.distributed.WorkerCoordinator.ConnectorsAndTasks;
import org.apache.kafka.connect.storage.ClusterConfigState;
import org.apache.kafka.connect.util.ConnectorTaskId;

/** Answers rounds of a group, a line of JSON each, by Kafka's own assignor. See record_rebalances.py. */
public class RebalanceRecorder {
    static long now;

    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper();
        Time time = (Time) Proxy.newProxyInstance(Time.class.getClassLoader(), new Class<?>[] {Time.class}, (proxy, method, values) -> {
            if (method.getName().equals("milliseconds"))
                return now;
            throw new UnsupportedOperationException(method.getName());
        });
        Map<String, IncrementalCooperativeAssignor> assignors = new HashMap<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode asked = json.readTree(line);
            now = asked.get("now").asLong();
            int maxDelay = asked.get("max_delay").asInt();
            String key = asked.get("history").asText() + "/" + asked.get("worker").asText();
            IncrementalCooperativeAssignor assignor =
                    assignors.computeIfAbsent(key, k -> new IncrementalCooperativeAssignor(new LogContext(), time, maxDelay));
            Map<String, ConnectorsAndTasks> members = new HashMap<>();
            asked.get("members").fields().forEachRemaining(e -> members.put(e.getKey(), work(e.getValue())));
            IncrementalCooperativeAssignor.ClusterAssignment answer = assignor.performTaskAssignment(
                    state(asked.get("configured")), asked.get("completed").asInt(), asked.get("generation").asInt(), members);
            ObjectNode out = json.createObjectNode();
            out.put("delay", assignor.delay);
            ArrayNode order = out.putArray("order");
            members.keySet().forEach(order::add);
            ObjectNode assigned = out.putObject("assigned");
            ObjectNode revoked = out.putObject("revoked");
            for (String member : members.keySet()) {
                list(assigned, member, answer.newlyAssignedConnectors(member), answer.newlyAssignedTasks(member));
                list(revoked, member, answer.newlyRevokedConnectors(member), answer.newlyRevokedTasks(member));
            }
            System.out.println(json.writeValueAsString(out));
        }
    }

    static void list(ObjectNode out, String member, Collection<String> connectors, Collection<ConnectorTaskId> tasks) {
        ArrayNode items = out.putArray(member);
        connectors.forEach(items::add);
        tasks.forEach(task -> items.add(task.connector() + "/" + task.task()));
    }

    static ConnectorsAndTasks work(JsonNode items) {
        List<String> connectors = new ArrayList<>();
        List<ConnectorTaskId> tasks = new ArrayList<>();
        for (JsonNode item : items) {
            String[] parts = item.asText().split("/");
            if (parts.length == 1)
                connectors.add(parts[0]);
            else
                tasks.add(new ConnectorTaskId(parts[0], Integer.parseInt(parts[1])));
        }
        return new ConnectorsAndTasks.Builder().with(connectors, tasks).build();
    }

    static ClusterConfigState state(JsonNode configured) {
        Map<String, Integer> counts = new HashMap<>();
        Map<String, Map<String, String>> configs = new HashMap<>();
        configured.fields().forEachRemaining(e -> {
            counts.put(e.getKey(), e.getValue().asInt());
            configs.put(e.getKey(), Map.of());
        });
        return new ClusterConfigState(0, null, counts, configs, Map.of(), Map.of(), Map.of(), Map.of(), Map.of(), Set.of(), Set.of());
    }
}
