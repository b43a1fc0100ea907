import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientConfigurationBuilder;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.StaticSessionCredentialsProvider;
import org.apache.rocketmq.client.apis.message.MessageBuilder;
import org.apache.rocketmq.client.apis.producer.Producer;

/**
 * Sends messages with RocketMQ's official Java client (gRPC), one after the other, and ends.
 *
 * <pre>java -Drocketmq.log.root=DIR -cp rocketmq-client-java-VERSION.jar Produce.java TOPIC [--option value]...
 *   --count N       messages (default 1); the key of the n-th is GROUP-n, with n from 0
 *   --groups N      message groups, 0 to N-1 by turns, for a FIFO topic (default none)
 *   --type T        tag, and property rowpost-type (default order.created)
 *   --endpoints E   default 127.0.0.1:8081
 * ROCKETMQ_ACCESS_KEY and ROCKETMQ_SECRET_KEY, when set, sign the requests.</pre>
 */
public class Produce {
    public static void main(String[] args) throws Exception {
        String topic = null;
        String endpoints = "127.0.0.1:8081";
        String type = "order.created";
        int count = 1;
        int groups = 0;
        for (int i = 0; i < args.length; i++) {
            switch (args[i]) {
                case "--count": count = Integer.parseInt(args[++i]); break;
                case "--groups": groups = Integer.parseInt(args[++i]); break;
                case "--type": type = args[++i]; break;
                case "--endpoints": endpoints = args[++i]; break;
                default: topic = args[i];
            }
        }
        if (topic == null) {
            System.err.println("usage: Produce.java TOPIC [--count N] [--groups N] [--type T] [--endpoints E]");
            System.exit(2);
        }
        ClientConfigurationBuilder configuration = ClientConfiguration.newBuilder().setEndpoints(endpoints).enableSsl(false);
        String key = System.getenv("ROCKETMQ_ACCESS_KEY");
        String secret = System.getenv("ROCKETMQ_SECRET_KEY");
        if (key != null && secret != null && !key.isEmpty() && !secret.isEmpty()) {
            configuration.setCredentialProvider(new StaticSessionCredentialsProvider(key, secret));
        }
        ClientServiceProvider provider = ClientServiceProvider.loadService();
        Producer producer = provider.newProducerBuilder().setClientConfiguration(configuration.build()).setTopics(topic).build();
        for (int i = 0; i < count; i++) {
            int group = groups == 0 ? 0 : i % groups;
            String message = group + "-" + i;
            MessageBuilder builder = provider.newMessageBuilder()
                .setTopic(topic)
                .setTag(type)
                .setKeys(message)
                .setBody(("{\"order\":\"" + message + "\"}").getBytes(StandardCharsets.UTF_8))
                .addProperty("rowpost-type", type)
                .addProperty("rowpost-key", message);
            if (groups > 0) {
                builder.setMessageGroup(String.valueOf(group));
            }
            producer.send(builder.build());
        }
        System.err.println(count + " messages sent");
        Runtime.getRuntime().halt(0); // close() waits for its threads
    }
}
