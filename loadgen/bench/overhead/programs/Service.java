// Answers each request on standard input, a blank line ends one, as service.py does.
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

public class Service {
    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static final long[] spent = new long[2];
    static volatile int sink;

    static void total() {
        for (int i = 0; i < 20000; i++) sink = i;
    }

    static void taxes() {
        for (int i = 0; i < 60000; i++) sink = i;
    }

    static void handle(int times) {
        long start = THREADS.getCurrentThreadCpuTime();
        for (int i = 0; i < times; i++) total();
        long middle = THREADS.getCurrentThreadCpuTime();
        taxes();
        spent[0] += middle - start;
        spent[1] += THREADS.getCurrentThreadCpuTime() - middle;
        System.out.println("spent " + spent[0] + " " + spent[1]);
        System.out.flush();
    }

    public static void main(String[] words) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        int times = 1;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            if (line.startsWith("GET ")) times = line.startsWith("GET /more") ? 9 : 1;
            if (line.isEmpty()) handle(times);
        }
    }
}
