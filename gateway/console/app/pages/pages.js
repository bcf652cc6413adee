// The pages, in the order of the menu. `key` is what follows `g` on the keyboard.
import { Connect } from "./connect/page.js";
import { Graph } from "./graph/page.js";
import { Home } from "./home.js";
import { Letters } from "./letters/page.js";
import { Live } from "./live/page.js";
import { Mesh } from "./mesh/page.js";
import { SqlPage } from "./sql/page.js";
import { Streams } from "./streams.js";
import { Tables } from "./tables/page.js";
import { Users } from "./users/page.js";

export const PAGES = [
  { path: "", title: "Home", key: "h", component: Home },
  { path: "sql", title: "SQL", key: "q", component: SqlPage },
  { path: "streams", title: "Streams", key: "s", component: Streams },
  { path: "graph", title: "Graph", key: "r", component: Graph },
  { path: "live", title: "Live", key: "l", component: Live },
  { path: "tables", title: "Tables", key: "t", component: Tables },
  { path: "dead-letters", title: "Dead letters", key: "d", component: Letters },
  { path: "connect", title: "Connect", key: "c", component: Connect },
  { path: "users", title: "Users", key: "u", component: Users },
  { path: "mesh", title: "Mesh", key: "m", component: Mesh },
];
