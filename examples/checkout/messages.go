package main

// PlaceOrder is an order of a customer.
type PlaceOrder struct {
	Number   int
	Customer string
	Card     string
	Item     string
	Cents    int
}

// Receipt says how an order has ended. Reason is empty if it was completed.
type Receipt struct {
	Completed bool
	Reason    string
	Charge    string // number of the charge
	Parcel    string // number of the parcel
}

// Reserve takes an item from the shelf, and Release puts it back.
type Reserve struct {
	Order int
	Item  string
}

type Reserved struct{ Number string }

type Release struct {
	Order  int
	Number string
}

// Charge charges a card, and Refund returns the money.
type Charge struct {
	Order int
	Card  string
	Cents int
}

type Charged struct{ Number string }

type Refund struct {
	Order  int
	Card   string
	Number string
}

// Ship sends the item.
type Ship struct {
	Order    int
	Customer string
}

type Shipped struct{ Parcel string }
