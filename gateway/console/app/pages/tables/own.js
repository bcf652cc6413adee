// Databases of lists, which the gateway makes: nothing is stored in them. Pure.

const OWN = ["information_schema", "performance_schema"];

export function isOwn(database) {
  return OWN.includes(database);
}
