/// Where what is sent comes from.
protocol ConnectInput: Sendable {
    /// Sends until there is no more, or nothing more can be sent; then tells the session.
    func feed() async
}
