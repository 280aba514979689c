// Names of groups, processes and calls are any text without "/". Ids of root calls are
// any text without ":".
import { type Context, Resonate } from "@resonatehq/sdk";

const names = ["groß 1", "?a=b&c#d%20", "☕", "a.b@c"];
const all = names.map((name) => new Resonate({ group: name, pid: `${name} process` }));

for (const [i, resonate] of all.entries()) {
  resonate.register("say", function* (ctx: Context, text: string): Generator<any, string, any> {
    if (text === "") return names[i];
    return `${names[i]} calls ${yield* ctx.rpc("say", "", ctx.options({ target: text }))}`;
  });
}
for (const [i, resonate] of all.entries()) {
  const next = names[(i + 1) % names.length];
  console.log(await resonate.rpc(`from ${names[i]}`, "say", next, resonate.options({ target: names[i] })));
}
for (const resonate of all) await resonate.stop();

// Output:
// groß 1 calls ?a=b&c#d%20
// ?a=b&c#d%20 calls ☕
// ☕ calls a.b@c
// a.b@c calls groß 1
