extension SimulatedNetwork {
    /// - Returns: the answer and when it comes; `nil` when none ever will.
    func lookUp(_ host: String, port: UInt16) -> (Result<[SocketAddress], ResolutionFailure>, Duration)? {
        if let literal = SocketAddress(literal: host, port: port) { return (.success([literal]), .zero) }
        if self.chance.happens(self.faults.lookupFailure) {
            return (.failure(.temporarilyUnavailable), self.drawLookupDelay())
        }
        switch self.names[host] {
        case .addresses(let addresses, let delay): return (.success(addresses.map { $0.with(port: port) }), delay)
        case .failure(let failure, let delay): return (.failure(failure), delay)
        case .silence: return nil
        case nil: return (.failure(.nameNotFound), self.drawLookupDelay())
        }
    }

    private func drawLookupDelay() -> Duration {
        self.chance.duration(in: self.faults.lookupDelay)
    }
}
