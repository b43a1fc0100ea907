import { describe, expect, it } from "vitest";
import { defineDoctorCases } from "./doctor.cases.ts";

describe("doctor on sqlite", () => {
  defineDoctorCases("sqlite", (bench, found) => {
    it("tells ids that run out", async () => {
      await bench().sql(
        "INSERT INTO local_message (id, message_type, message_key, topic, message_body) VALUES (8000000000000000000, 't', 'k', 'orders', '{}')",
      );
      expect((await found()).map(({ id, severity }) => `${severity} ${id}`)).toContain("warning D209");
    });
  });
});
