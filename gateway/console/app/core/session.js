// Who is logged in, and what they may do.
import { computed, signal } from "../../vendor/preact.js";
import { ask, onLoggedOut } from "./http.js";

/** null: not known yet; otherwise `{user, rights, …}` of /v1/whoami, or `{user: null}`. */
export const who = signal(null);
export const user = computed(() => who.value?.user ?? null);
/** Why the last session ended, if one did. */
export const farewell = signal("");

onLoggedOut((error) => {
  if (user.value) farewell.value = error.fault.message;
  who.value = { user: null };
});

export async function learnWho() {
  try {
    who.value = await ask("/v1/whoami");
  } catch (error) {
    who.value = { user: null };
    if (error.status !== 401) farewell.value = error.message;
  }
}

export async function logIn(name, password) {
  const found = await ask("/v1/login", { user: name, password });
  farewell.value = "";
  who.value = found;
}

export async function logOut({ everywhere = false } = {}) {
  await ask("/v1/logout", everywhere ? { everywhere } : {});
  farewell.value = "";
  who.value = { user: null };
}

/** Whether the user has *right* on an object; the gateway decides again at each request. */
export function may(right, kind, database, name) {
  const me = who.value;
  if (!me?.user) return false;
  if (me.admin) return true;
  return (me.rights ?? []).some(
    (held) => (held.right === right || held.right === "ADMIN") && covers(held, kind, database, name),
  );
}

function covers(held, kind, database, name) {
  if (held.kind === "all") return true;
  if (held.database !== database) return false;
  return held.kind === "database" || (held.kind === kind && held.name === name);
}
