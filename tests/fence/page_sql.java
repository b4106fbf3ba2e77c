// SPDX-License-Identifier: Apache-2.0
// Runs the statements of stdin, each on a line, as a program with JDBC does: the driver begins and commits.
// page_sql.py starts it with the URL, the user and the password.
import java.nio.charset.StandardCharsets;
import java.sql.DriverManager;

class PageSql {
  public static void main(String[] args) throws Exception {
    try (var db = DriverManager.getConnection(args[0], args[1], args[2])) {
      db.setAutoCommit(false);
      var before17 = db.getMetaData().getDatabaseMajorVersion() < 17;
      for (var sql : new String(System.in.readAllBytes(), StandardCharsets.UTF_8).split("\n")) {
        if (sql.equals("begin") || sql.equals("commit") || before17 && sql.contains("local transaction_timeout")) continue;
        try (var statement = db.prepareStatement(sql)) {
          if (!statement.execute() || statement.getResultSet().next()) continue;
        }
        db.rollback();
        System.out.println("refused");
        return;
      }
      db.commit();
      System.out.println("committed");
    }
  }
}
