import { defineAction } from "svc";

export const config = defineAction({
  description: "Sells a seat to whoever is signed in to the page, and to nobody else.",
  active: true,
  environment: "server",
  triggers: [
    {
      trigger: "manual",
    },
  ],
  dependencies: ["svc-datasources", "svc-session", "svc-communicate"],
});

/**
 * Sells one seat to whoever is signed in to the page. Who that is the service says, never the payload; and the mail goes to the
 * address of that guest's own entry.
 * @param {{ payload: { seat?: unknown } }} context
 */
async function execute({ payload }) {
  const session = await Svc.Session.get();
  const guest = session?.entries?.dataSource.data;
  if (!guest) return { refused: "Sign in to book a seat." };

  const seats = await Svc.DataSources.connectByName("bookings-seats");
  const seat = await seats.findOne({ where: { Seat: String(payload.seat) } });
  if (!seat) return { refused: "There is no such seat." };
  const name = String(seat.data["Seat"]);
  if (seat.data["Taken"]) return { refused: `Seat ${name} is taken.` };
  try {
    const sold = { Taken: true, Name: guest["Name"], Email: guest["Email"], Reminded: false };
    // From the state that was read: of any number of guests who want this seat now, one gets it.
    await seats.update(seat.id, sold, { ifUpdatedAt: seat.updatedAt });
  } catch (error) {
    if (error.status !== "ENTRY_CHANGED") throw error;
    return { refused: `Somebody was faster: seat ${name} is taken.` };
  }

  await Svc.Communicate.sendEmail(
    {
      to: [{ email: String(guest["Email"]), name: String(guest["Name"]) }],
      subject: "Your seat {{seat}}",
      html: "<p>Dear {{name}},</p><p>seat <b>{{seat}}</b> is yours, tonight at eight.</p><p>The Small Theatre</p>",
      text: "Dear {{name}},\n\nseat {{seat}} is yours, tonight at eight.\n\nThe Small Theatre",
    },
    { name: guest["Name"], seat: name },
  );
  return { seat: name };
}
