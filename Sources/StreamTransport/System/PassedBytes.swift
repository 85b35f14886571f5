/// What came of passing bytes from one connection to another within the kernel.
package struct PassedBytes: Equatable, Sendable {
    /// Bytes taken from the source; 0 at its end of input; a negated error number.
    package let received: Int
    /// Of these the bytes that the target took, or a negated error number if it took none. The rest is held by the system
    /// and waits to be fetched by `takePassed`.
    package let sent: Int

    package init(received: Int, sent: Int) {
        self.received = received
        self.sent = sent
    }
}
