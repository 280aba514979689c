// A schedule: the server begins a function at each occurrence of a cron expression.
import { type Context, Resonate } from "@resonatehq/sdk";

const resonate = new Resonate({ group: "schedules" });
const code = (e: any) => `${e.name} ${e.serverError?.code}`;

resonate.register("report", function* (ctx: Context, kind: string): Generator<any, string, any> {
  return yield* ctx.run(() => `${kind} report`);
});

// A field for seconds comes first, if there are six fields.
const schedule = await resonate.schedule("every.second", "* * * * * *", "report", "small", resonate.options({ target: "schedules" }));
const record = await resonate.schedules.get("every.second");
console.log(record.cron, record.promiseId, record.promiseTags, record.nextRunAt % 1000, record.nextRunAt > record.createdAt);

// The id of an occurrence contains its time. Each occurrence is a call of its own.
for (const run of [0, 1]) {
  const handle = await occurrence(`every.second-${record.nextRunAt + 1000 * run}`);
  console.log(await handle.result());
}
console.log("ran:", ((await resonate.schedules.get("every.second")).lastRunAt ?? 0) >= record.nextRunAt + 1000);

await schedule.delete();
console.log(await resonate.schedules.get("every.second").catch(code));
console.log(await schedule.delete().catch(code));

// The five usual fields, and an expression that is wrong.
await resonate.schedule("nightly", "30 2 * * *", "report", "large");
const nightly = new Date((await resonate.schedules.get("nightly")).nextRunAt);
console.log(nightly.getUTCHours(), nightly.getUTCMinutes(), nightly > new Date());
console.log(await resonate.schedule("wrong", "99 2 * * *", "report", "large").catch((e) => e.name));

await resonate.stop();

// occurrence waits until the server has begun an occurrence.
async function occurrence(id: string) {
  for (;;) {
    try {
      return await resonate.get<string>(id);
    } catch (e) {
      if (code(e) !== "ResonateError 404") throw e;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

// Output:
// * * * * * * {{.id}}-{{.timestamp}} { 'resonate:target': 'poll://any@schedules' } 0 true
// small report
// small report
// ran: true
// ResonateError 404
// ResonateError 404
// 2 30 true
// ResonateTimeoutException
