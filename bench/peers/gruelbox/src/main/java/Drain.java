import com.gruelbox.transactionoutbox.Dialect;
import com.gruelbox.transactionoutbox.Instantiator;
import com.gruelbox.transactionoutbox.Persistor;
import com.gruelbox.transactionoutbox.Submitter;
import com.gruelbox.transactionoutbox.TransactionManager;
import com.gruelbox.transactionoutbox.TransactionOutbox;
import com.gruelbox.transactionoutbox.ThreadLocalContextTransactionManager;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * Drains messages with com.gruelbox:transactionoutbox-core: flush in a loop, 8 submitter threads, READ COMMITTED (at MariaDB's default
 * isolation it stalls for minutes). Speaks the protocol of protocol.mjs: java Drain JDBC_URL postgres|mariadb MESSAGES.
 */
public class Drain {
  /** What a message calls when it is published. */
  public interface Publisher {
    void publish(String key, String body);
  }

  private static final int WARM_UP = 3000;
  private static final int THREADS = 8;
  /**
   * When a message is flushed again that no thread has run: some are passed over while flush holds their lock, and its default would leave the
   * last of them lying for two minutes.
   */
  private static final Duration NEXT_TRY = Duration.ofSeconds(5);

  private final HikariDataSource source;
  private final Dialect dialect;
  private volatile CountDownLatch left;

  private Drain(String url, String product) {
    HikariConfig config = new HikariConfig();
    config.setJdbcUrl(url);
    config.setMaximumPoolSize(20);
    config.setTransactionIsolation("TRANSACTION_READ_COMMITTED");
    source = new HikariDataSource(config);
    dialect = product.equals("postgres") ? Dialect.POSTGRESQL_9 : Dialect.MY_SQL_8;
  }

  public static void main(String[] words) throws Exception {
    java.util.logging.LogManager.getLogManager().reset();
    Drain drain = new Drain(words[0], words[1]);
    drain.run(WARM_UP, false);
    drain.run(Integer.parseInt(words[2]), true);
    System.exit(0);
  }

  private void run(int messages, boolean measured) throws Exception {
    fill(messages);
    left = new CountDownLatch(messages);
    if (measured) say("{\"kind\":\"ready\"}");
    ExecutorService threads = Executors.newFixedThreadPool(THREADS);
    TransactionOutbox outbox = outbox(transactions(), Submitter.withExecutor(threads), NEXT_TRY);
    Thread flusher = new Thread(() -> flush(outbox));
    flusher.setDaemon(true);
    flusher.start();
    left.await();
    while (waiting() > 0) Thread.sleep(5);
    if (measured) say("{\"kind\":\"done\",\"published\":" + messages + ",\"statements\":0}");
    flusher.interrupt();
    flusher.join();
    threads.shutdown();
    threads.awaitTermination(5, TimeUnit.SECONDS);
  }

  private void flush(TransactionOutbox outbox) {
    try {
      while (!Thread.interrupted()) {
        try {
          if (!outbox.flush()) Thread.sleep(50);
        } catch (RuntimeException error) {
          if (left.getCount() > 0) System.err.println(error);
        }
      }
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
    }
  }

  /** Messages whose first attempt is due two seconds after they were written: nobody else submits them. */
  private void fill(int messages) throws Exception {
    ThreadLocalContextTransactionManager transactions = transactions();
    TransactionOutbox outbox = outbox(transactions, (entry, runner) -> {}, Duration.ofSeconds(2));
    String note = "x".repeat(380);
    for (int first = 0; first < messages; first += 500) {
      int from = first;
      int to = Math.min(messages, first + 500);
      transactions.inTransaction(() -> {
        for (int number = from; number < to; number += 1) {
          outbox.schedule(Publisher.class).publish("m" + number, "{\"orderId\":" + number + ",\"note\":\"" + note + "\"}");
        }
      });
    }
    Thread.sleep(2200);
    execute(dialect == Dialect.POSTGRESQL_9 ? "VACUUM ANALYZE TXNO_OUTBOX" : "ANALYZE TABLE TXNO_OUTBOX");
  }

  private ThreadLocalContextTransactionManager transactions() {
    return (ThreadLocalContextTransactionManager) TransactionManager.fromDataSource(source);
  }

  private TransactionOutbox outbox(ThreadLocalContextTransactionManager transactions, Submitter submitter, Duration attempts) {
    return TransactionOutbox.builder()
        .transactionManager(transactions)
        .persistor(Persistor.forDialect(dialect))
        .instantiator(Instantiator.using(type -> (Publisher) (key, body) -> left.countDown()))
        .submitter(submitter)
        .attemptFrequency(attempts)
        .build();
  }

  private long waiting() throws SQLException {
    try (Connection connection = source.getConnection();
        Statement statement = connection.createStatement();
        ResultSet rows = statement.executeQuery("SELECT COUNT(*) FROM TXNO_OUTBOX")) {
      rows.next();
      return rows.getLong(1);
    }
  }

  private void execute(String text) throws SQLException {
    try (Connection connection = source.getConnection(); Statement statement = connection.createStatement()) {
      connection.setAutoCommit(true);
      statement.execute(text);
    }
  }

  private static void say(String line) throws java.io.IOException {
    System.out.println(line);
    System.out.flush();
    System.in.read(new byte[64]);
  }
}
