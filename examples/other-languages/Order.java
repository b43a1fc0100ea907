package shop;

/** A row of the shop's table, and the body of its message. */
public record Order(String id, int amount) {}
