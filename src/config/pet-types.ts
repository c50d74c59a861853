import { NAME_MAX_LENGTH } from "../domain/constants.ts";
import { grouped } from "../api/formatting.ts";
import { INT64_RANGE, parseIdentifier } from "../api/json.ts";
import { FINAL_ORDER_STATUSES, ORDER_STATUSES, PET_STATUSES } from "../domain/resources.ts";
import { Invalid, text } from "../api/schema.ts";
import { choice, type ValueType } from "./value-types.ts";

/** An int64 in plain decimal, as in the paths of the API. */
function int64(placeholder: string, expected: string): ValueType<bigint> {
  return {
    placeholder,
    expected,
    parse: (text) => {
      const value = parseIdentifier(text);
      return value === undefined ? undefined : BigInt(value);
    },
    format: String,
  };
}

export const petId = int64("ID", "the ID of a pet, as petstore pets list shows it");
export const orderId = int64("ID", "the ID of an order, as petstore orders list shows it");
export const categoryId = int64("N", `an integer ${INT64_RANGE}`);

const name = text(NAME_MAX_LENGTH);

/** What the API accepts as a name. */
export const petName: ValueType<string> = {
  placeholder: "NAME",
  expected: `1 to ${grouped(NAME_MAX_LENGTH)} characters, not all of them blank`,
  parse: (text) => {
    const value = name.read(text);
    return value instanceof Invalid ? undefined : value;
  },
  format: (value) => value,
};

export const petStatus = choice("STATUS", PET_STATUSES);
/** `none` removes the status. */
export const newPetStatus = choice("STATUS", [...PET_STATUSES, "none"]);
export const orderStatus = choice("STATUS", ORDER_STATUSES);
export const finalOrderStatus = choice("STATUS", FINAL_ORDER_STATUSES);
