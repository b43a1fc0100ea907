# shellcheck shell=bash
# What the scripts rocketmq and rocketmq4 have in common: the JDK, the download, the certificate and
# the launcher. Sourced after common.sh, never run.

# shellcheck disable=SC2034 # used by those who source this
jvm_openings=(
  --add-exports=java.base/jdk.internal.ref=ALL-UNNAMED --add-exports=java.base/sun.nio.ch=ALL-UNNAMED
  --add-opens=java.base/sun.nio.ch=ALL-UNNAMED --add-opens=java.base/java.nio=ALL-UNNAMED
  --add-opens=java.base/java.net=ALL-UNNAMED --add-opens=java.base/java.lang=ALL-UNNAMED --add-opens=java.base/java.util=ALL-UNNAMED
  -Djava.net.preferIPv4Stack=true
)

jdk() { # tool -> its path
  if [ -n "${JAVA_HOME:-}" ] && [ -x "$JAVA_HOME/bin/$1" ]; then echo "$JAVA_HOME/bin/$1"
  else command -v "$1" || die "$1 not found: a JDK is needed (set JAVA_HOME or PATH)"; fi
}

download() { # folder artifact:version... -> the artifacts of org.apache.rocketmq with all they need, by Maven
  local lib=$1 tmp=$1.tmp.$$ part
  shift
  [ ! -d "$lib" ] || return 0
  command -v mvn >/dev/null || die "Maven (mvn) is needed to download RocketMQ"
  rm -rf "$tmp"
  mkdir -p "$tmp/lib"
  {
    echo '<project><modelVersion>4.0.0</modelVersion><groupId>dev</groupId><artifactId>rocketmq-dev</artifactId>'
    echo '<version>1</version><packaging>pom</packaging><dependencies>'
    for part; do
      echo "<dependency><groupId>org.apache.rocketmq</groupId><artifactId>${part%:*}</artifactId><version>${part#*:}</version></dependency>"
    done
    echo '</dependencies></project>'
  } >"$tmp/pom.xml"
  say "downloading $* with Maven, once ..."
  if ! mvn -B -ntp -f "$tmp/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$tmp/lib" >"$tmp/log" 2>&1; then
    grep -E 'ERROR|BUILD' "$tmp/log" | head -n 10 >&2
    rm -rf "$tmp"
    die "Maven could not download $*"
  fi
  [ -d "$lib" ] || mv "$tmp/lib" "$lib" # somebody else may have been quicker
  rm -rf "$tmp"
}

# One certificate for all ports, made once: without it each of RocketMQ's servers makes its own at
# every start.
certificate() { # folder of the instance
  local tls=$1/tls
  mkdir -p "$tls"
  [ ! -s "$tls/server.p12" ] || return 0
  "$(jdk keytool)" -genkeypair -alias server -keyalg EC -groupname secp256r1 -dname CN=localhost -validity 3650 \
    -ext san=dns:localhost,ip:127.0.0.1 -ext bc:c=ca:true -storetype PKCS12 -storepass changeit \
    -keystore "$tls/server.p12" >/dev/null 2>&1 || die "keytool could not make $tls/server.p12"
  rm -f "$tls/server.crt"
}

launcher() { # folder of the instance -> its launcher, compiled
  local source=$1/LocalRocketMQ.java
  mkdir -p "$1/classes"
  launcher_source >"$source.new"
  if ! cmp -s "$source.new" "$source" || [ ! -f "$1/classes/LocalRocketMQ.class" ]; then
    mv "$source.new" "$source"
    "$(jdk javac)" -d "$1/classes" "$source" || die "javac failed"
  fi
  rm -f "$source.new"
}

launcher_source() {
  cat <<'JAVA'
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.IOException;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.util.Base64;
import java.util.concurrent.CopyOnWriteArrayList;

/** Runs RocketMQ's name server, then its broker, from 5 on with the gRPC proxy, in this process and on 127.0.0.1 only. */
public class LocalRocketMQ {
    public static void main(String[] args) throws Exception {
        Path run = Path.of(args[0]);
        writeCertificate(run.resolve("tls"));
        try { // the gRPC and HA ports have no bind setting and take "any address": let that be 127.0.0.1
            Object impl = field(InetAddress.class, "impl").get(null);
            field(impl.getClass(), "anyLocalAddress").set(impl, InetAddress.getByAddress(new byte[] {127, 0, 0, 1}));
        } catch (Exception e) {
            System.err.println("some ports listen on all addresses: " + e);
        }
        boolean hasProxy = Files.exists(run.resolve("conf/rmq-proxy.json"));
        if (hasProxy) {
            leaveOutRemotingServer();
        }
        call("org.apache.rocketmq.namesrv.NamesrvStartup", "-c", run + "/conf/namesrv.conf");
        if (hasProxy) {
            call("org.apache.rocketmq.proxy.ProxyStartup", "-pm", "local", "-bc", run + "/conf/broker.conf", "-pc", run + "/conf/rmq-proxy.json");
        } else {
            call("org.apache.rocketmq.broker.BrokerStartup", "-c", run + "/conf/broker.conf");
        }
        if (!Boolean.getBoolean("tls.enable")) {
            awaitRegistration(Integer.parseInt(args[1]), "127.0.0.1:" + args[2]);
        }
        System.out.println("LocalRocketMQ ready");
    }

    /** The proxy's second server, for classic clients, always listens on 0.0.0.0. */
    private static void leaveOutRemotingServer() {
        try {
            Object parts = field(Class.forName("org.apache.rocketmq.proxy.ProxyStartup"), "PROXY_START_AND_SHUTDOWN").get(null);
            field(parts.getClass().getSuperclass(), "startAndShutdownList").set(parts, new CopyOnWriteArrayList<Object>() {
                @Override public boolean add(Object part) {
                    return !part.getClass().getSimpleName().equals("RemotingProtocolServer") && super.add(part);
                }
            });
        } catch (Exception e) {
            System.err.println("the proxy's remoting server is on: " + e);
        }
    }

    /** Until the name server knows the broker; when its first registration fails the next one is 10 s later. */
    private static void awaitRegistration(int nameServerPort, String broker) throws Exception {
        byte[] header = "{\"code\":106,\"language\":\"JAVA\",\"version\":0,\"opaque\":1,\"flag\":0}".getBytes(StandardCharsets.UTF_8);
        for (String answer = ""; !answer.contains(broker); Thread.sleep(100)) {
            try (Socket socket = new Socket("127.0.0.1", nameServerPort)) {
                socket.setSoTimeout(3000);
                DataOutputStream out = new DataOutputStream(socket.getOutputStream());
                out.writeInt(4 + header.length); // a frame: its length, the header's length, header, body
                out.writeInt(header.length);
                out.write(header);
                DataInputStream in = new DataInputStream(socket.getInputStream());
                byte[] frame = new byte[in.readInt()];
                in.readFully(frame);
                answer = new String(frame, StandardCharsets.UTF_8);
            } catch (IOException e) {
                answer = "";
            }
        }
    }

    private static Field field(Class<?> type, String name) throws Exception {
        Field field = type.getDeclaredField(name);
        field.setAccessible(true);
        return field;
    }

    private static void call(String main, String... args) throws Exception {
        Class.forName(main).getMethod("main", String[].class).invoke(null, (Object) args);
    }

    private static void writeCertificate(Path dir) throws Exception {
        if (Files.exists(dir.resolve("server.crt"))) {
            return;
        }
        char[] password = "changeit".toCharArray();
        KeyStore store = KeyStore.getInstance(new File(dir.toFile(), "server.p12"), password);
        Files.writeString(dir.resolve("server.key"), pem("PRIVATE KEY", store.getKey("server", password).getEncoded()));
        Files.writeString(dir.resolve("server.crt"), pem("CERTIFICATE", store.getCertificate("server").getEncoded()));
    }

    private static String pem(String type, byte[] der) {
        String text = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(der);
        return "-----BEGIN " + type + "-----\n" + text + "\n-----END " + type + "-----\n";
    }
}
JAVA
}
