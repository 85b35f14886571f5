import SessionTasks
import StreamTransport

/// Opening by command. From any thread; who awaits may be cancelled, and what was being opened is then given up.
extension Gateway {
    package typealias Opening = Result<ConnectionKey, ClientFailure>
    /// Told the name as soon as there is one.
    package typealias Naming = @Sendable (ConnectionKey) -> Void

    /// Opens a connection, on the loop whose turn it is.
    /// - Returns: its name, once it is open.
    package func open(_ order: ClientOrder, named: Naming? = nil) async -> Opening {
        await self.opening(named) { $0.open(order, $1) }
    }

    /// Opens a tunnel between two peers, both its connections on one loop.
    /// - Returns: the name of its downstream side, once both stand and are joined.
    package func open(_ order: ClientTunnelOrder, named: Naming? = nil) async -> Opening {
        await self.opening(named) { $0.open(order, $1) }
    }

    private func opening(
        _ named: Naming?,
        _ begin: @escaping @Sendable (LoopGateway, @escaping ClientSession.Opened) -> any OrderedConnection
    ) async -> Opening {
        guard let part = self.nextPart() else { return .failure(ClientFailure(nil, failure: .ended, response: nil)) }
        let watch = LoopConfined(OpeningWatch())
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                part.value.loop.execute {
                    let connection = begin(part.value) { result in
                        watch.value.answered()
                        continuation.resume(returning: result)
                    }
                    named?(connection.key)
                    watch.value.begun(connection)
                }
            }
        } onCancel: {
            part.value.loop.execute { watch.value.giveUp() }
        }
    }
}
