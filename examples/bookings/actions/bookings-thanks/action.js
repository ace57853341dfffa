import { defineAction } from "svc";

export const config = defineAction({
  description: "Thanks for a booking, in the page that made it.",
  active: true,
  environment: "client",
  triggers: [
    {
      trigger: "analytics",
      where: {
        type: "analytics.event",
        data: {
          name: "booked",
        },
      },
    },
  ],
});

/**
 * Runs in the page that has just sent the analytics event "booked".
 * @param {{ payload: { data: Record<string, unknown> } }} context
 */
async function execute({ payload }) {
  const note = document.querySelector("#bookings-note");
  if (note) note.textContent = `Thank you! Seat ${payload.data["seat"]} is yours, and a mail is on its way.`;
}
