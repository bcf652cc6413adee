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
import java.time.OffsetDateTime;
import java.util.Arrays;
import java.util.HexFormat;

/**
 * Does what its standard input says, over one JDBC connection of whichever driver knows the
 * address. A command is a line of words with tabs between them; an answer is lines of the same form
 * and a line that is a dot. In commands a word `-` is null.
 */
public final class Jdbc {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    public static void main(String[] arguments) throws Exception {
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Class.forName(arguments[0]);
        try (Connection connection = DriverManager.getConnection(arguments[1])) {
            say("connected");
            OUT.println(".");
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                try {
                    answer(connection, line.split("\t", -1));
                } catch (SQLException wrong) {
                    sayError(wrong);
                }
                OUT.println(".");
            }
        } catch (SQLException refused) {
            sayError(refused);
            OUT.println(".");
        }
    }

    private static void answer(Connection connection, String[] words) throws SQLException {
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
                case "rows" -> rows(connection, words);
                case "many" -> many(connection, statement, words);
                case "transaction" -> transaction(connection, statement, words);
                case "valid" -> say(connection.isValid(5), connection.getCatalog());
                default -> describe(connection.getMetaData(), words);
            }
        }
    }

    /** What tools ask of a database before they show it. */
    private static void describe(DatabaseMetaData about, String[] words) throws SQLException {
        String[] given = new String[5];
        for (int at = 1; at < words.length; at++) {
            given[at] = words[at].equals("-") ? null : words[at];
        }
        switch (words[0]) {
            case "product" ->
                    say(about.getDatabaseProductName(), about.getDatabaseProductVersion());
            case "catalogs" -> sayColumns(about.getCatalogs(), "TABLE_CAT");
            case "schemas" -> sayColumns(about.getSchemas(), "TABLE_SCHEM");
            case "table types" -> sayColumns(about.getTableTypes(), "TABLE_TYPE");
            case "types" -> sayColumns(about.getTypeInfo(), "TYPE_NAME");
            case "functions" -> sayColumns(about.getFunctions(null, null, "%"), "FUNCTION_NAME");
            case "procedures" -> sayColumns(about.getProcedures(null, null, "%"), "PROCEDURE_NAME");
            case "tables" ->
                    sayColumns(
                            about.getTables(
                                    given[1], given[2], given[3],
                                    given[4] == null ? null : given[4].split(",")),
                            "TABLE_NAME", "TABLE_TYPE", "REMARKS");
            case "columns" ->
                    sayColumns(
                            about.getColumns(given[1], given[2], given[3], "%"),
                            "TABLE_NAME", "COLUMN_NAME", "TYPE_NAME", "COLUMN_SIZE");
            case "keys" ->
                    sayColumns(about.getPrimaryKeys(given[1], given[2], given[3]), "COLUMN_NAME");
            case "imported" ->
                    sayColumns(about.getImportedKeys(given[1], given[2], given[3]), "FKTABLE_NAME");
            case "exported" ->
                    sayColumns(about.getExportedKeys(given[1], given[2], given[3]), "FKTABLE_NAME");
            case "indexes" ->
                    sayColumns(
                            about.getIndexInfo(given[1], given[2], given[3], false, true),
                            "INDEX_NAME");
            case "keywords" -> say(about.getSQLKeywords(), about.getIdentifierQuoteString());
            default -> say("error", "0", "no command " + words[0]);
        }
    }

    /** The parameters behind the text are kind:value. */
    private static void prepared(Connection connection, String[] words) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(words[1])) {
            bind(statement, words, 2);
            if (words[1].startsWith("SELECT")) {
                sayTyped(statement.executeQuery());
            } else {
                say(statement.executeUpdate());
            }
        }
    }

    /** Rows of a prepared INSERT as one batch; a row is values with bars between them. */
    private static void rows(Connection connection, String[] words) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(words[1])) {
            for (String row : Arrays.copyOfRange(words, 2, words.length)) {
                bind(statement, row.split("\\|"), 0);
                statement.addBatch();
            }
            say(Arrays.toString(statement.executeBatch()));
        }
    }

    private static void bind(PreparedStatement statement, String[] words, int from)
            throws SQLException {
        for (int at = from; at < words.length; at++) {
            String[] given = words[at].split(":", 2);
            int place = at - from + 1;
            switch (given[0]) {
                case "int" -> statement.setInt(place, Integer.parseInt(given[1]));
                case "long" -> statement.setLong(place, Long.parseLong(given[1]));
                case "float" -> statement.setFloat(place, Float.parseFloat(given[1]));
                case "double" -> statement.setDouble(place, Double.parseDouble(given[1]));
                case "bool" -> statement.setBoolean(place, given[1].equals("true"));
                case "time" ->
                        statement.setTimestamp(
                                place, Timestamp.from(OffsetDateTime.parse(given[1]).toInstant()));
                case "null" -> statement.setNull(place, Types.VARCHAR);
                default -> statement.setString(place, given[1]);
            }
        }
    }

    /** Reads rows some at a time: their number, and the sum of their first column. */
    private static void many(Connection connection, Statement statement, String[] words)
            throws SQLException {
        connection.setAutoCommit(false);
        statement.setFetchSize(Integer.parseInt(words[2]));
        long count = 0;
        long sum = 0;
        for (ResultSet found = statement.executeQuery(words[1]); found.next(); count++) {
            sum += found.getLong(1);
        }
        connection.commit();
        connection.setAutoCommit(true);
        say(count, sum);
    }

    /** Runs statements as one transaction that is rolled back; how each ended. */
    private static void transaction(Connection connection, Statement statement, String[] words)
            throws SQLException {
        connection.setAutoCommit(false);
        Object[] ended = new Object[words.length - 1];
        for (int at = 0; at < ended.length; at++) {
            try {
                statement.execute(words[at + 1]);
                ended[at] = "ok";
            } catch (SQLException wrong) {
                ended[at] = wrong.getSQLState();
            }
        }
        connection.rollback();
        connection.setAutoCommit(true);
        say(ended);
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
                shown[at] = typed(found.getObject(at + 1));
            }
            say(shown);
        }
    }

    private static String typed(Object value) {
        if (value == null) {
            return "null";
        }
        if (value instanceof byte[] bytes) {
            return "byte[] " + HexFormat.of().formatHex(bytes);
        }
        return value.getClass().getSimpleName() + " " + value;
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

    private static void sayError(SQLException wrong) {
        String message = String.valueOf(wrong.getMessage()).replaceAll("\\s+", " ");
        say("error", Integer.toHexString(wrong.getErrorCode()), message, wrong.getSQLState());
    }

    private static void say(Object... words) {
        StringBuilder line = new StringBuilder();
        for (Object word : words) {
            line.append(line.isEmpty() ? "" : "\t").append(word);
        }
        OUT.println(line);
    }
}
