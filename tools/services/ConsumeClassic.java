import java.util.ArrayList;
import java.util.Base64;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Consumes topics from their beginning with RocketMQ's official Java client (classic) and prints one JSON line per message.
 *
 * <pre>java -cp "$(tools/services/rocketmq4 classpath)" ConsumeClassic.java TOPIC... [--option value]...
 *   --name-server A  default 127.0.0.1:9876
 *   --group G        consumer group (default consume-classic)
 *   --count N        end with status 0 after N messages (default: no limit)
 *   --idle S         end after S seconds without a message (default 20); status 1 when --count was not reached
 *   --tls            TLS (the client trusts any certificate)
 * ROCKETMQ4_ACCESS_KEY and ROCKETMQ4_SECRET_KEY, when set, sign the requests.</pre>
 */
public class ConsumeClassic {
    public static void main(String[] args) throws Exception {
        String nameServer = "127.0.0.1:9876";
        String group = "consume-classic";
        int count = Integer.MAX_VALUE;
        long idle = 20;
        boolean tls = false;
        List<String> topics = new ArrayList<>();
        for (int i = 0; i < args.length; i++) {
            switch (args[i]) {
                case "--name-server": nameServer = args[++i]; break;
                case "--group": group = args[++i]; break;
                case "--count": count = Integer.parseInt(args[++i]); break;
                case "--idle": idle = Long.parseLong(args[++i]); break;
                case "--tls": tls = true; break;
                default: topics.add(args[i]);
            }
        }
        if (topics.isEmpty()) {
            System.err.println("usage: ConsumeClassic.java TOPIC... [--name-server A] [--group G] [--count N] [--idle S] [--tls]");
            System.exit(2);
        }
        String key = System.getenv("ROCKETMQ4_ACCESS_KEY");
        String secret = System.getenv("ROCKETMQ4_SECRET_KEY");
        boolean signs = key != null && secret != null && !key.isEmpty() && !secret.isEmpty();
        DefaultLitePullConsumer consumer = signs
            ? new DefaultLitePullConsumer(group, new AclClientRPCHook(new SessionCredentials(key, secret)))
            : new DefaultLitePullConsumer(group);
        consumer.setNamesrvAddr(nameServer);
        consumer.setUseTLS(tls);
        consumer.setVipChannelEnabled(false);
        consumer.start();
        // Assigned, not subscribed: a subscriber may wait 20 s until it is given the queues of a new topic.
        List<MessageQueue> queues = new ArrayList<>();
        for (String topic : topics) {
            queues.addAll(consumer.fetchMessageQueues(topic));
        }
        consumer.assign(queues);
        for (MessageQueue queue : queues) {
            consumer.seekToBegin(queue);
        }
        System.err.println("consuming " + topics + " as group " + group);
        Set<String> places = new HashSet<>();
        int seen = 0;
        long last = System.nanoTime();
        while (seen < count && System.nanoTime() - last < idle * 1_000_000_000L) {
            for (MessageExt message : consumer.poll(200)) {
                last = System.nanoTime();
                // What was fetched between assign and seekToBegin comes again.
                if (places.add(message.getTopic() + ' ' + message.getQueueId() + ' ' + message.getQueueOffset()) && seen++ < count) {
                    System.out.println(json(message));
                }
            }
        }
        System.out.flush();
        System.err.println(seen + " messages");
        Runtime.getRuntime().halt(count == Integer.MAX_VALUE || seen >= count ? 0 : 1);
    }

    private static String json(MessageExt message) {
        StringBuilder out = new StringBuilder("{");
        text(out, "id", message.getMsgId()).append(',');
        text(out, "topic", message.getTopic()).append(',');
        text(out, "tag", message.getTags()).append(',');
        text(out, "keys", message.getKeys()).append(',');
        text(out, "bornHost", message.getBornHostString()).append(',');
        text(out, "base64", Base64.getEncoder().encodeToString(message.getBody())).append(",\"properties\":{");
        String separator = "";
        for (Map.Entry<String, String> property : new TreeMap<>(message.getProperties()).entrySet()) {
            out.append(separator);
            text(out, property.getKey(), property.getValue());
            separator = ",";
        }
        return out.append("},\"queue\":").append(message.getQueueId()).append(",\"offset\":").append(message.getQueueOffset())
            .append(",\"born\":").append(message.getBornTimestamp()).append('}').toString();
    }

    private static StringBuilder text(StringBuilder out, String name, String value) {
        quote(out, name).append(':');
        return value == null ? out.append("null") : quote(out, value);
    }

    private static StringBuilder quote(StringBuilder out, String value) {
        out.append('"');
        for (char c : value.toCharArray()) {
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < 0x20 || c > 0x7e) {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"');
    }
}
