import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/** Iceberg's own REST catalog (of its tests) on a port of this machine, over a JDBC catalog: CatalogServer PORT JDBC-URL WAREHOUSE. */
public class CatalogServer {
  public static void main(String[] arguments) throws Exception {
    Map<String, String> properties = new HashMap<>();
    properties.put("catalog-impl", "org.apache.iceberg.jdbc.JdbcCatalog");
    properties.put("uri", arguments[1]);
    properties.put("warehouse", arguments[2]);
    properties.put("jdbc.schema-version", "V1");
    Configuration storage = new Configuration();
    for (int place = 3; place < arguments.length; place++) {
      String[] setting = arguments[place].split("=", 2);
      storage.set(setting[0], setting[1]);
    }
    Catalog catalog = CatalogUtil.buildIcebergCatalog("rest_backend", properties, storage);
    Server server = new Server();
    ServerConnector connector = new ServerConnector(server);
    connector.setHost("127.0.0.1");
    connector.setPort(Integer.parseInt(arguments[0]));
    server.addConnector(connector);
    ServletContextHandler context = new ServletContextHandler();
    context.addServlet(new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(catalog))), "/*");
    server.setHandler(context);
    server.start();
    server.join();
  }
}
