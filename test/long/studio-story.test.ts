/** The whole story on a desktop and on a phone. */
import { tellStory } from "../web/studio-story.js";

tellStory(1280);
tellStory(390);
