import ControlAPI
import GatewayCore
import HummingbirdCore
import SessionTasks
import Synchronization
import WebSocketProtocol

extension ConnectionsResource {
    // MARK: Attach

    /// Bridges the client's WebSocket and the connection's messages, or the bytes of a stream as binary messages, where an
    /// empty message closes the stream for writing. The connection stays open when the client's WebSocket closes.
    func attach(_ call: ControlCall) async throws -> Response {
        let live = try await self.liveConnection(call)
        let endpoint = try self.endpoint(of: live)
        guard call.wantsWebSocket else {
            throw ControlProblem(426, "upgrade-required", "This resource is only available as a WebSocket.")
        }
        guard !live.report.isRelayed else {
            throw ControlProblem(409, "relayed", "The connection belongs to a tunnel; /tap gives a copy of its data.")
        }
        let key = live.report.key
        guard self.attached.withLock({ $0.insert(key).inserted }) else {
            throw ControlProblem(409, "attached", "Another client is attached to the connection.").retryable()
        }
        do {
            return try await ControlUpgrade(call: call).webSocket(on: self.context.loop, receives: true) { socket in
                switch endpoint {
                case .webSocket(let task): await Self.bridge(socket, task)
                case .stream(let task): await Self.bridge(socket, task)
                }
                self.attached.withLock { _ = $0.remove(key) }
            }
        } catch {
            self.attached.withLock { _ = $0.remove(key) }
            throw error
        }
    }

    private static func bridge(_ socket: WebSocketTask, _ task: WebSocketTask) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                while let message = try? await task.receive() {
                    guard (try? await socket.send(message)) != nil else { return }
                }
                guard !Task.isCancelled else { return }
                socket.cancel(with: Self.closeCode(of: task), reason: task.closeReason ?? [])
            }
            group.addTask {
                while let message = try? await socket.receive() {
                    guard (try? await task.send(message)) != nil else { return }
                }
            }
            await group.next()
            group.cancelAll()
        }
    }

    private static func closeCode(of task: WebSocketTask) -> CloseCode {
        switch task.closeCode {
        case .noStatusReceived?: .normalClosure
        case let code?: code.isAllowedOnWire ? code : .internalError
        case nil: .internalError
        }
    }

    private static func bridge(_ socket: WebSocketTask, _ task: StreamTask) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                var isAtEnd = false
                while !isAtEnd, let chunk = try? await task.read(maximum: 64 << 10) {
                    if !chunk.bytes.isEmpty {
                        guard (try? await socket.send(.data(chunk.bytes))) != nil else { return }
                    }
                    isAtEnd = chunk.isAtEnd
                }
                guard !Task.isCancelled else { return }
                socket.cancel(with: isAtEnd ? .normalClosure : .internalError)
            }
            group.addTask {
                var isFinished = false
                while let message = try? await socket.receive() {
                    let bytes: [UInt8] =
                        switch message {
                        case .data(let bytes): bytes
                        case .string(let text): Array(text.utf8)
                        }
                    if bytes.isEmpty {
                        // Only once: each call would queue another entry on a suspended task.
                        if !isFinished { task.closeWrite() }
                        isFinished = true
                    } else if (try? await task.write(bytes)) == nil {
                        return
                    }
                }
            }
            await group.next()
            group.cancelAll()
        }
    }

    // MARK: Tap

    /// Copies the connection's traffic, as Server-Sent Events or over a WebSocket.
    func tap(_ call: ControlCall) async throws -> Response {
        let endpoint = try self.endpoint(of: try await self.liveConnection(call))
        let sampling = try call.query.integer("sample", in: 1...1_000_000) ?? 1
        let pieceLimit = try call.query.integer("maxBytes", in: 0...65_536) ?? 4096
        let bounds = try StreamBounds(call.query)
        let queue = TapQueue()
        let session = TapSession(endpoint, queue, pieceLimit: pieceLimit, sampling: sampling)
        if call.wantsWebSocket {
            return try await ControlUpgrade(call: call).webSocket(on: self.context.loop) { socket in
                await session.start()
                let timer = Self.finish(queue, after: bounds)
                try? await Self.send(queue, bounds) { json, _ in
                    try await socket.send(.string(String(decoding: json, as: UTF8.self)))
                }
                timer?.cancel()
                await session.stop()
            }
        }
        return try await EventStream.response(call) { writer, disconnect in
            await session.start()
            let timer = Self.finish(queue, after: bounds)
            let watch = Task {
                await disconnect.wait()
                queue.finish()
            }
            // Throws if the client disconnects during a write.
            try? await Self.send(queue, bounds) { json, number in
                try await writer.writeEvent(json, id: number, type: number == nil ? "end" : "piece")
            }
            watch.cancel()
            timer?.cancel()
            await session.stop()
        }
    }

    private static func finish(_ queue: TapQueue, after bounds: StreamBounds) -> Task<Void, Never>? {
        guard let left = bounds.timeLeft else { return nil }
        return Task {
            try? await Task.sleep(for: left)
            queue.finish()
        }
    }

    /// Passes the JSON of each piece to `write` with the piece's number, and at last that of the end without a number.
    private static func send(
        _ queue: TapQueue, _ bounds: StreamBounds, _ write: (_ json: [UInt8], _ number: UInt64?) async throws -> Void
    ) async throws {
        var count = 0
        while !bounds.isReached(count), let batch = await queue.next() {
            var skipped = batch.skipped
            for piece in batch.pieces.prefix(bounds.remaining(after: count)) {
                try await write(TapWriter.json(piece, skipped: skipped), piece.number)
                skipped = 0
                count += 1
            }
        }
        try await write(JSONBody.encode(TapRecord { $0.skipped = queue.skippedSinceLast }), nil)
    }
}

/// The connections that a client is attached to. At most one client per connection, as two would take messages from each
/// other.
final class AttachedConnections: Sendable {
    private let keys = Mutex<Set<ConnectionKey>>([])

    func withLock<R: Sendable>(_ body: (inout sending Set<ConnectionKey>) -> sending R) -> R {
        self.keys.withLock { body(&$0) }
    }
}
