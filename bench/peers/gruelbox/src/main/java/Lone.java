import com.gruelbox.transactionoutbox.Dialect;
import com.gruelbox.transactionoutbox.Instantiator;
import com.gruelbox.transactionoutbox.Persistor;
import com.gruelbox.transactionoutbox.Submitter;
import com.gruelbox.transactionoutbox.ThreadLocalContextTransactionManager;
import com.gruelbox.transactionoutbox.TransactionManager;
import com.gruelbox.transactionoutbox.TransactionOutbox;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.PreparedStatement;
import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/**
 * Transactions at a fixed rate, each with an order row and, with the word outbox, a message of
 * com.gruelbox:transactionoutbox-core, which this process publishes right after the commit, as its
 * Submitter does by itself. Speaks the protocol of protocol.mjs: java Lone JDBC_URL postgres|mariadb MESSAGES RATE order|outbox.
 */
public class Lone {
  /** What a message calls when it is published. */
  public interface Publisher {
    void publish(int number, String body);
  }

  /** At twice the rate, so that the hot code is compiled when the clocks start. */
  private static final int WARM_UP = 8000;
  private static final int THREADS = 8;
  private static final String INSERT = "INSERT INTO bench_order (customer, total) VALUES (?, ?)";
  private static final Duration NEXT_TRY = Duration.ofSeconds(5);

  private final HikariDataSource source;
  private final ThreadLocalContextTransactionManager transactions;
  private final TransactionOutbox outbox;
  private final boolean withMessage;
  private final ExecutorService producers = Executors.newFixedThreadPool(THREADS);
  private final String note = "x".repeat(380);
  private final AtomicInteger done = new AtomicInteger();
  private final AtomicInteger published = new AtomicInteger();
  private volatile long[] committingAt;
  private volatile long[] publishedAt;

  private Lone(String url, String product, boolean withMessage) {
    HikariConfig config = new HikariConfig();
    config.setJdbcUrl(url);
    config.setMaximumPoolSize(20);
    config.setTransactionIsolation("TRANSACTION_READ_COMMITTED");
    source = new HikariDataSource(config);
    this.withMessage = withMessage;
    transactions = (ThreadLocalContextTransactionManager) TransactionManager.fromDataSource(source);
    outbox =
        TransactionOutbox.builder()
            .transactionManager(transactions)
            .persistor(Persistor.forDialect(product.equals("postgres") ? Dialect.POSTGRESQL_9 : Dialect.MY_SQL_8))
            .instantiator(Instantiator.using(type -> (Publisher) this::publish))
            .submitter(Submitter.withExecutor(Executors.newFixedThreadPool(THREADS)))
            .attemptFrequency(NEXT_TRY)
            .build();
  }

  public static void main(String[] words) throws Exception {
    java.util.logging.LogManager.getLogManager().reset();
    int messages = Integer.parseInt(words[2]);
    int rate = Integer.parseInt(words[3]);
    Lone lone = new Lone(words[0], words[1], words[4].equals("outbox"));
    var flusher = Executors.newSingleThreadScheduledExecutor();
    if (lone.withMessage) flusher.scheduleWithFixedDelay(lone::flush, 5, 5, TimeUnit.SECONDS);
    lone.run(WARM_UP, rate * 2);
    say("{\"kind\":\"ready\"}");
    lone.run(messages, rate);
    say("{\"kind\":\"done\",\"published\":" + messages + ",\"statements\":0,\"latenciesMs\":[" + lone.latencies() + "]}");
    System.exit(0);
  }

  /** Transactions begin at the rate, whether or not those before are through. */
  private void run(int messages, int rate) throws InterruptedException {
    committingAt = new long[messages];
    publishedAt = new long[messages];
    done.set(0);
    published.set(0);
    long start = System.nanoTime();
    for (int number = 0; number < messages; number += 1) {
      int order = number;
      long wait = start + (number + 1) * 1_000_000_000L / rate - System.nanoTime();
      if (wait > 0) LockSupport.parkNanos(wait);
      producers.execute(() -> produce(order));
    }
    while (done.get() < messages || (withMessage && published.get() < messages)) Thread.sleep(1);
  }

  private void produce(int number) {
    try {
      transactions.inTransactionThrows(
          transaction -> {
            try (PreparedStatement insert = transaction.connection().prepareStatement(INSERT)) {
              insert.setString(1, "customer-" + number % 1000);
              insert.setDouble(2, 12.5 + number % 100);
              insert.executeUpdate();
            }
            if (withMessage)
              outbox.schedule(Publisher.class).publish(number, "{\"orderId\":" + number + ",\"note\":\"" + note + "\"}");
            committingAt[number] = System.nanoTime();
          });
    } catch (Exception error) {
      error.printStackTrace();
      System.exit(1);
    }
    done.incrementAndGet();
  }

  private void publish(int number, String body) {
    publishedAt[number] = System.nanoTime();
    published.incrementAndGet();
  }

  private void flush() {
    try {
      outbox.flush();
    } catch (RuntimeException error) {
      System.err.println(error);
    }
  }

  private String latencies() {
    if (!withMessage) return "";
    StringBuilder list = new StringBuilder();
    for (int number = 0; number < publishedAt.length; number += 1) {
      if (number > 0) list.append(',');
      list.append(String.format(Locale.ROOT, "%.3f", (publishedAt[number] - committingAt[number]) / 1e6));
    }
    return list.toString();
  }

  private static void say(String line) throws java.io.IOException {
    System.out.println(line);
    System.out.flush();
    System.in.read(new byte[64]);
  }
}
