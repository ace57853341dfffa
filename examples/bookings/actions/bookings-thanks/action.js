import { defineAction } from "svc";

export const config = defineAction({
  description: "Thanks the guest for a booking, in the page from which the guest booked.",
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
 * Shows the thanks. Runs in the page that sent the analytics event "booked".
 * @param {{ payload: { data: Record<string, unknown> } }} context
 */
async function execute({ payload }) {
  const note = document.querySelector("#bookings-note");
  if (note) note.textContent = `Thank you! Seat ${payload.data["seat"]} is yours, and a mail is on its way.`;
}
