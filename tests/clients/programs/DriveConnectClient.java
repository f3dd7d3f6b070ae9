import com.fasterxml.jackson.annotation.JsonAutoDetect;
import com.fasterxml.jackson.annotation.PropertyAccessor;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import org.sourcelab.kafka.connect.apiclient.Configuration;
import org.sourcelab.kafka.connect.apiclient.KafkaConnectClient;
import org.sourcelab.kafka.connect.apiclient.request.dto.ConnectorPluginConfigDefinition;
import org.sourcelab.kafka.connect.apiclient.request.dto.NewConnectorDefinition;
import org.sourcelab.kafka.connect.apiclient.request.post.PostConnectorRestart;

/** The functions of org.sourcelab:kafka-connect-client. Arguments and output are those of `steps.py`. */
public class DriveConnectClient {
    private static final ObjectMapper JSON =
            new ObjectMapper().setVisibility(PropertyAccessor.FIELD, JsonAutoDetect.Visibility.ANY)
                    .setVisibility(PropertyAccessor.GETTER, JsonAutoDetect.Visibility.NONE)
                    .setVisibility(PropertyAccessor.IS_GETTER, JsonAutoDetect.Visibility.NONE);

    private static void step(String label, Callable<?> call) throws Exception {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("call", label);
        try {
            line.put("returned", call.call());
        } catch (Exception error) {
            line.put("raised", error.getClass().getSimpleName());
            line.put("text", error.getMessage());
            line.put("returned", null);
        }
        System.out.println(JSON.writeValueAsString(line));
    }

    private static void until(Callable<Boolean> probe, String what) throws Exception {
        long deadline = System.nanoTime() + 60_000_000_000L;
        while (true) {
            try {
                if (probe.call()) {
                    return;
                }
            } catch (RuntimeException error) {
                what = what + " (" + error + ")";
            }
            if (System.nanoTime() > deadline) {
                System.err.println(what + ": not within 60 s");
                System.exit(1);
            }
            Thread.sleep(200);
        }
    }

    public static void main(String[] arguments) throws Exception {
        final String name = arguments[1];
        final String ghost = name + "-ghost";
        final KafkaConnectClient client = new KafkaConnectClient(new Configuration(arguments[0]));
        final NewConnectorDefinition definition = NewConnectorDefinition.newBuilder()
                .withName(name)
                .withConfig("connector.class", "org.apache.kafka.connect.file.FileStreamSourceConnector")
                .withConfig("tasks.max", 1)
                .withConfig("topic", arguments[2])
                .withConfig("file", arguments[3])
                .build();
        final NewConnectorDefinition broken =
                NewConnectorDefinition.newBuilder().withName(name + "-broken").withConfig(definition.getConfig()).withConfig("tasks.max", 0).build();
        final Map<String, String> changed = new LinkedHashMap<>(definition.getConfig());
        changed.put("batch.size", "30");

        step("getConnectServerVersion", client::getConnectServerVersion);
        step("addConnector", () -> client.addConnector(definition));
        waitFor(client, name, "RUNNING");
        until(() -> !client.getConnectorTopics(name).getTopics().isEmpty(), "a topic in use");
        step("addConnector again", () -> client.addConnector(definition));
        step("addConnector broken", () -> client.addConnector(broken));
        step("getConnectors", () -> client.getConnectors().contains(name));
        step("getConnectorsWithExpandedStatus", () -> client.getConnectorsWithExpandedStatus().getStatusForConnector(name));
        step("getConnectorsWithExpandedInfo", () -> client.getConnectorsWithExpandedInfo().getDefinitionForConnector(name));
        step("getConnectorsWithAllExpandedMetadata", () -> client.getConnectorsWithAllExpandedMetadata().getDefinitionForConnector(name));
        for (String one : new String[] {name, ghost}) {
            final String of = one.equals(name) ? "" : " of nothing";
            step("getConnector" + of, () -> client.getConnector(one));
            step("getConnectorConfig" + of, () -> client.getConnectorConfig(one));
            step("getConnectorStatus" + of, () -> client.getConnectorStatus(one));
            step("getConnectorTasks" + of, () -> client.getConnectorTasks(one));
            step("getConnectorTaskStatus" + of, () -> client.getConnectorTaskStatus(one, 0));
            step("getConnectorTopics" + of, () -> client.getConnectorTopics(one));
        }
        step("updateConnectorConfig", () -> client.updateConnectorConfig(name, changed));
        waitFor(client, name, "RUNNING");
        step("pauseConnector", () -> client.pauseConnector(name));
        waitFor(client, name, "PAUSED");
        step("pauseConnector of nothing", () -> client.pauseConnector(ghost));
        step("resumeConnector", () -> client.resumeConnector(name));
        waitFor(client, name, "RUNNING");
        step("restartConnector", () -> client.restartConnector(name));
        waitFor(client, name, "RUNNING");
        step("restartConnector of nothing", () -> client.restartConnector(ghost));
        step("restartConnector with tasks", () -> client.restartConnector(new PostConnectorRestart(name).withIncludeTasks(true)));
        waitFor(client, name, "RUNNING");
        step("restartConnectorTask", () -> client.restartConnectorTask(name, 0));
        waitFor(client, name, "RUNNING");
        step("restartConnectorTask of nothing", () -> client.restartConnectorTask(name, 9));
        step("stopConnector", () -> client.stopConnector(name));
        until(() -> client.getConnectorStatus(name).getConnector().get("state").equals("STOPPED"), "STOPPED");
        step("getConnectorPlugins", client::getConnectorPlugins);
        step("validateConnectorPluginConfig", () -> client.validateConnectorPluginConfig(
                ConnectorPluginConfigDefinition.newBuilder().withName("FileStreamSource").withConfig(broken.getConfig()).withConfig("name", name).build()));
        step("deleteConnector", () -> client.deleteConnector(name));
        step("deleteConnector again", () -> client.deleteConnector(name));
    }

    private static void waitFor(KafkaConnectClient client, String name, String state) throws Exception {
        until(() -> {
            var status = client.getConnectorStatus(name);
            return status.getConnector().get("state").equals(state) && status.getTasks().size() == 1 && status.getTasks().get(0).getState().equals(state);
        }, state);
    }
}
