// Promises without a function: any program settles them by their id.
import { Codec, type Context, Resonate } from "@resonatehq/sdk";

const resonate = new Resonate({ group: "promises" });
const codec = new Codec();
const at = Date.now() + 3_600_000;

// A workflow that waits for a promise of its own.
const review = resonate.register("review", function* (ctx: Context, subject: string): Generator<any, string, any> {
  const answer = yield* ctx.promise<string>({ timeout: 3_600_000, tags: { subject } });
  return `${subject}: ${yield* answer}`;
});
const begun = await review.beginRun("review", "plan");
console.log("done:", await begun.done());
await until(async () => (await resonate.promises.get("review:0")).state === "pending");
await resonate.promises.resolve("review:0", codec.encode("looks good ✓"));
console.log(await begun.result());

// A promise that is created, read and settled by itself.
const created = await resonate.promises.create("door", at, { data: "b3Blbg==", headers: { by: "hand" }, tags: { colour: "red" } });
console.log(created.state, created.param, created.tags, created.createdAt <= Date.now(), created.settledAt);
const again = await resonate.promises.create("door", at + 1, { data: "" });
console.log("unchanged:", JSON.stringify(again) === JSON.stringify(created));
const rejected = await resonate.promises.reject("door", { data: "c2h1dA==" });
console.log(rejected.state, rejected.value.data, rejected.settledAt !== undefined);
console.log("stays:", (await resonate.promises.resolve("door")).state);
console.log(await resonate.promises.get("nothing").catch((e) => `${e.name} ${e.serverError.code}`));

// A promise past its deadline is settled, without a program that does it.
console.log((await resonate.promises.create("past", at - 7_200_000)).state);
console.log((await resonate.promises.create("timer", at - 7_200_000, { tags: { "resonate:timer": "true" } })).state);

await resonate.stop();

// until waits for a condition of the server.
async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition().catch(() => false))) await new Promise((resolve) => setTimeout(resolve, 20));
}

// Output:
// done: false
// plan: looks good ✓
// pending { headers: { by: 'hand' }, data: 'b3Blbg==' } { colour: 'red' } true undefined
// unchanged: true
// rejected c2h1dA== true
// stays: rejected
// ResonateError 404
// rejected_timedout
// resolved
