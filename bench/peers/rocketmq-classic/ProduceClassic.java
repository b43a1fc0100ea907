import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;

/**
 * RocketMQ's official Java client for the classic protocol, as fast as it goes: batches of messages
 * from several threads. After a warm-up it prints {@code ready}; for each line of its input it sends
 * them all, and prints {@code {"wallMs":…,"cpuMs":…}}.
 *
 * <pre>java -cp JARS ProduceClassic.java NAME_SERVER TOPIC MESSAGES BATCH THREADS BODY</pre>
 */
public class ProduceClassic {
    public static void main(String[] args) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("rowpost-bench");
        producer.setNamesrvAddr(args[0]);
        String topic = args[1];
        int messages = Integer.parseInt(args[2]);
        int batch = Integer.parseInt(args[3]);
        int threads = Integer.parseInt(args[4]);
        byte[] body = args[5].getBytes(StandardCharsets.UTF_8);
        producer.start();
        send(producer, topic, Math.min(messages, 10_000), batch, threads, body);
        System.out.println("ready");
        while (System.in.read() >= 0) {
            long cpu = cpuNanos();
            long start = System.nanoTime();
            send(producer, topic, messages, batch, threads, body);
            long wall = System.nanoTime() - start;
            System.out.printf("{\"wallMs\":%d,\"cpuMs\":%d}%n", wall / 1_000_000, (cpuNanos() - cpu) / 1_000_000);
        }
        Runtime.getRuntime().halt(0);
    }

    private static long cpuNanos() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    /** The same properties as rowpost's messages have. */
    private static void send(DefaultMQProducer producer, String topic, int messages, int batch, int threads, byte[] body)
            throws InterruptedException {
        AtomicInteger next = new AtomicInteger();
        CountDownLatch done = new CountDownLatch(threads);
        for (int thread = 0; thread < threads; thread++) {
            new Thread(() -> {
                try {
                    for (int from = next.getAndAdd(batch); from < messages; from = next.getAndAdd(batch)) {
                        List<Message> list = new ArrayList<>(batch);
                        for (int i = from; i < Math.min(from + batch, messages); i++) {
                            Message message = new Message(topic, "order.created", "key-" + i, body);
                            message.putUserProperty("rowpost-id", "order.created:key-" + i);
                            message.putUserProperty("rowpost-type", "order.created");
                            message.putUserProperty("rowpost-key", "key-" + i);
                            message.putUserProperty("rowpost-attempt", "1");
                            list.add(message);
                        }
                        SendResult result = producer.send(list);
                        if (result.getSendStatus() != SendStatus.SEND_OK) throw new IllegalStateException(result.toString());
                    }
                    done.countDown();
                } catch (Exception error) {
                    error.printStackTrace();
                    Runtime.getRuntime().halt(1);
                }
            }).start();
        }
        done.await();
    }
}
