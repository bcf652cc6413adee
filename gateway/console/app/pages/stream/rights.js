// What of the user's rights a replacement of a stream asks for, besides those on its source and target.
import { may } from "../../core/session.js";

export function mayReplace(database, name) {
  return may("CREATE", "database", database) && may("DROP", "stream", database, name);
}
