// Package shop places orders. On PostgreSQL write $1, $2, … in the place of the question marks.
package shop

import (
	"context"
	"database/sql"
	"encoding/json"
)

const insertOrder = `INSERT INTO orders (id, amount) VALUES (?, ?)`

const insertMessage = `INSERT INTO local_message
  (message_type, message_key, topic, message_body, created_by)
VALUES (?, ?, ?, ?, 'go-shop')`

// Order is a row of the shop's table, and the body of its message.
type Order struct {
	ID     string `json:"id"`
	Amount int    `json:"amount"`
}

// Place writes the order and the message about it: both, or neither.
func Place(ctx context.Context, db *sql.DB, order Order) error {
	body, err := json.Marshal(order)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after the commit
	if _, err := tx.ExecContext(ctx, insertOrder, order.ID, order.Amount); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, insertMessage, "order.created", order.ID, "orders", string(body)); err != nil {
		return err
	}
	return tx.Commit()
}
