import StreamTransport

extension LoopGateway {
    /// Ends this loop's part: closing handshakes begin spread evenly over the close spread, and at the timeout the rest
    /// is cut.
    package func drain(_ settings: DrainSettings, whenEmpty: @escaping () -> Void) {
        let drainer = LoopDrainer(self, settings: settings, whenEmpty: whenEmpty)
        self.drainer = drainer
        drainer.begin()
    }
}
