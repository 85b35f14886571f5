/// Names one who waits for a connection.
struct WaitingTicket: Hashable {
    let key: PoolKey
    let number: UInt64
}
