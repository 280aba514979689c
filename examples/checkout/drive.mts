// Places an order from TypeScript: node drive.mts NUMBER. RESONATE_URL is the URL of the server.
import { Resonate } from "@resonatehq/sdk";

type Receipt = { Completed: boolean; Reason: string; Charge: string; Parcel: string };

const number = Number(process.argv[2] ?? 1000);
const resonate = new Resonate({ group: "drive" });
const order = { Number: number, Customer: "tess", Card: "card of tess", Item: "lamp", Cents: 900 };

// The function and the group are those of the edge shop -> orders: PlaceOrder. The SDK accepts no
// colon in an id, so the id differs from the one that a Go program gives an order with this number.
const workers = resonate.options({ target: "checkout" });
const receipt = await resonate.rpc<Receipt>(`order-${number}`, "shop.orders.PlaceOrder", order, workers);
console.log(receipt.Completed ? `order ${number}: ${receipt.Parcel}` : `order ${number}: ${receipt.Reason}`);

await resonate.stop();
