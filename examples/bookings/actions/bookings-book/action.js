import { defineAction } from "svc";

export const config = defineAction({
  description: "Sells a seat to the guest who is signed in to the page.",
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
 * Sells one seat to the guest who is signed in to the page. Reads the guest from the session, because a visitor can write any name and
 * address into the payload.
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
    const soldSeat = { Taken: true, Name: guest["Name"], Email: guest["Email"], Reminded: false };
    // Fails if the seat has changed since it was read. So only one of several guests who book it at the same time gets the seat.
    await seats.update(seat.id, soldSeat, { ifUpdatedAt: seat.updatedAt });
  } catch (error) {
    if (error.status !== "ENTRY_CHANGED") throw error;
    return { refused: `Another guest was faster: seat ${name} is taken.` };
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
