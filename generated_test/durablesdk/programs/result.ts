// Waits for the result of a call that any process began, and prints it:
//
//	node result.ts ID
import { Resonate } from "@resonatehq/sdk";

const resonate = new Resonate({ group: "result", token: process.env.RESONATE_TOKEN });
const handle = await resonate.get(process.argv[2]);
console.log("done:", await handle.done());
try {
  console.log("result:", JSON.stringify(await handle.result()));
} catch (e: any) {
  console.log(`error: ${e.name}: ${e.message}`);
}
await resonate.stop();
