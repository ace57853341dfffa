/** The whole story at a desk and on a phone. */
import { tellStory } from "../web/studio-story.js";

tellStory(1280);
tellStory(390);
