import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.sql.Types;
import java.util.Arrays;

/**
 * Does what its standard input says, over one JDBC connection. A command is a line of words with
 * tabs between them; an answer is lines of the same form and a line that is a dot.
 */
public final class Jdbc {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    public static void main(String[] arguments) throws Exception {
        Class.forName("com.taosdata.jdbc.rs.RestfulDriver");
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Connection connection = DriverManager.getConnection(arguments[0])) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                try {
                    answer(connection, line.split("\t"));
                } catch (SQLException wrong) {
                    say("error", Integer.toHexString(wrong.getErrorCode()), wrong.getMessage());
                }
                OUT.println(".");
            }
        }
    }

    private static void answer(Connection connection, String[] words) throws SQLException {
        DatabaseMetaData about = connection.getMetaData();
        try (Statement statement = connection.createStatement()) {
            switch (words[0]) {
                case "update" -> say(statement.executeUpdate(words[1]));
                case "query" -> sayTyped(statement.executeQuery(words[1]));
                case "long" -> {
                    ResultSet found = statement.executeQuery(words[1]);
                    found.next();
                    say(found.getLong(1));
                }
                case "batch" -> {
                    for (String sql : Arrays.copyOfRange(words, 1, words.length)) {
                        statement.addBatch(sql);
                    }
                    say(Arrays.toString(statement.executeBatch()));
                }
                case "prepared" -> prepared(connection, words);
                case "valid" -> say(connection.isValid(5), connection.getCatalog());
                case "product" ->
                        say(about.getDatabaseProductName(), about.getDatabaseProductVersion());
                case "catalogs" -> sayColumns(about.getCatalogs(), "TABLE_CAT");
                case "tables" ->
                        sayColumns(
                                about.getTables(words[1], null, words[2], words[3].split(",")),
                                "TABLE_NAME", "TABLE_TYPE", "REMARKS");
                case "columns" ->
                        sayColumns(
                                about.getColumns(words[1], null, words[2], "%"),
                                "TABLE_NAME", "COLUMN_NAME", "TYPE_NAME", "COLUMN_SIZE");
                case "keys" ->
                        sayColumns(about.getPrimaryKeys(words[1], null, words[2]), "COLUMN_NAME");
                default -> say("error", "0", "no command " + words[0]);
            }
        }
    }

    /** The parameters behind the text are kind:value. */
    private static void prepared(Connection connection, String[] words) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(words[1])) {
            for (int at = 2; at < words.length; at++) {
                String[] given = words[at].split(":", 2);
                switch (given[0]) {
                    case "int" -> statement.setInt(at - 1, Integer.parseInt(given[1]));
                    case "float" -> statement.setFloat(at - 1, Float.parseFloat(given[1]));
                    case "time" ->
                            statement.setTimestamp(at - 1, new Timestamp(Long.parseLong(given[1])));
                    case "null" -> statement.setNull(at - 1, Types.VARCHAR);
                    default -> statement.setString(at - 1, given[1]);
                }
            }
            if (words[1].startsWith("SELECT")) {
                sayTyped(statement.executeQuery());
            } else {
                say(statement.executeUpdate());
            }
        }
    }

    /** The columns with their types, then the rows with the classes of their values. */
    private static void sayTyped(ResultSet found) throws SQLException {
        ResultSetMetaData about = found.getMetaData();
        Object[] shown = new Object[about.getColumnCount()];
        for (int at = 0; at < shown.length; at++) {
            shown[at] = about.getColumnLabel(at + 1) + " " + about.getColumnTypeName(at + 1);
        }
        say(shown);
        while (found.next()) {
            for (int at = 0; at < shown.length; at++) {
                Object value = found.getObject(at + 1);
                shown[at] = value == null ? "null" : value.getClass().getSimpleName() + " " + value;
            }
            say(shown);
        }
    }

    private static void sayColumns(ResultSet found, String... names) throws SQLException {
        while (found.next()) {
            Object[] shown = new Object[names.length];
            for (int at = 0; at < names.length; at++) {
                shown[at] = found.getString(names[at]);
            }
            say(shown);
        }
    }

    private static void say(Object... words) {
        StringBuilder line = new StringBuilder();
        for (Object word : words) {
            line.append(line.isEmpty() ? "" : "\t").append(word);
        }
        OUT.println(line);
    }
}
