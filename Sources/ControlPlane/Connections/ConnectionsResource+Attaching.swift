import GatewayCore
import HTTPTypes
import Hummingbird
import HummingbirdCore
import SessionTasks
import Synchronization
import WebSocketProtocol

extension ConnectionsResource {
    // MARK: Attach

    /// Makes a WebSocket of the request that is the connection's traffic: message by message, or as binary messages the
    /// bytes of a stream, where an empty one closes it for writing. When it is closed, the connection goes on.
    func attach(_ call: ControlCall) async throws -> Response {
        let live = try await self.liveConnection(call)
        let link = try self.endpoint(of: live)
        guard call.wantsWebSocket else {
            throw ControlProblem(426, "upgrade-required", "Ask for a WebSocket: this is no plain resource.")
        }
        guard !live.report.isRelayed else {
            throw ControlProblem(409, "relayed", "The connection's data is passed on; /tap gives a copy.")
        }
        let key = live.report.key
        guard self.attached.withLock({ $0.insert(key).inserted }) else {
            throw ControlProblem(409, "attached", "Somebody else is attached to the connection.").retryable()
        }
        do {
            return try await ControlUpgrade(call).webSocket(on: self.context.loop, receives: true) { socket in
                switch link {
                case .webSocket(let task): await Self.join(socket, task)
                case .stream(let task): await Self.join(socket, task)
                }
                self.attached.withLock { _ = $0.remove(key) }
            }
        } catch {
            self.attached.withLock { _ = $0.remove(key) }
            throw error
        }
    }

    private static func join(_ socket: WebSocketTask, _ task: WebSocketTask) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                while let message = try? await task.receive() {
                    guard (try? await socket.send(message)) != nil else { return }
                }
                guard !Task.isCancelled else { return }
                socket.cancel(with: Self.code(of: task), reason: task.closeReason ?? [])
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

    private static func code(of task: WebSocketTask) -> CloseCode {
        switch task.closeCode {
        case .noStatusReceived?: .normalClosure
        case let code?: code.isAllowedOnWire ? code : .internalError
        case nil: .internalError
        }
    }

    private static func join(_ socket: WebSocketTask, _ task: StreamTask) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                var isWhole = false
                while !isWhole, let chunk = try? await task.read(maximum: 64 << 10) {
                    if !chunk.bytes.isEmpty {
                        guard (try? await socket.send(.data(chunk.bytes))) != nil else { return }
                    }
                    isWhole = chunk.isAtEnd
                }
                guard !Task.isCancelled else { return }
                socket.cancel(with: isWhole ? .normalClosure : .internalError)
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
                        // One is enough: of a suspended task each would wait in the queue.
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

    /// A copy of what the connection carries, as events. It slows nothing: what finds no room is skipped and counted.
    func tap(_ call: ControlCall) async throws -> Response {
        let live = try await self.liveConnection(call)
        let link = try self.endpoint(of: live)
        let sampling = try call.query.integer("sample", in: 1...1_000_000) ?? 1
        let pieceLimit = try call.query.integer("maxBytes", in: 0...65_536) ?? 4096
        let bounds = try StreamBounds(call.query)
        let queue = TapQueue()
        let opened = TapSession(link, queue, pieceLimit: pieceLimit, sampling: sampling)
        if call.wantsWebSocket {
            return try await ControlUpgrade(call).webSocket(on: self.context.loop) { socket in
                await opened.start()
                let clock = Self.end(queue, by: bounds)
                await Self.pour(queue, bounds, into: socket)
                clock?.cancel()
                await opened.stop()
            }
        }
        return try await EventStream.response(call) { writer, gone in
            await opened.start()
            let clock = Self.end(queue, by: bounds)
            let watching = Task {
                await gone.wait()
                queue.finish()
            }
            do {
                try await Self.pour(queue, bounds, into: &writer)
            } catch {
                // The client is gone in the middle of a write.
            }
            watching.cancel()
            clock?.cancel()
            await opened.stop()
        }
    }

    private static func end(_ queue: TapQueue, by bounds: StreamBounds) -> Task<Void, Never>? {
        guard let left = bounds.timeLeft else { return nil }
        return Task {
            try? await Task.sleep(for: left)
            queue.finish()
        }
    }

    private static func pour(
        _ queue: TapQueue, _ bounds: StreamBounds, into writer: inout EventStream.Writer
    ) async throws {
        var given = 0
        while !bounds.isReached(given), let batch = await queue.next() {
            var skipped = batch.skipped
            for piece in batch.pieces.prefix(bounds.remaining(after: given)) {
                try await writer.writeEvent(TapWriter.json(piece, skipped: skipped), id: piece.number, type: "piece")
                skipped = 0
                given += 1
            }
        }
        try await writer.writeEvent(TapWriter.end(skipped: queue.skippedSinceLast), id: nil, type: "end")
    }

    private static func pour(_ queue: TapQueue, _ bounds: StreamBounds, into socket: WebSocketTask) async {
        var given = 0
        while !bounds.isReached(given), let batch = await queue.next() {
            var skipped = batch.skipped
            for piece in batch.pieces.prefix(bounds.remaining(after: given)) {
                let text = String(decoding: TapWriter.json(piece, skipped: skipped), as: UTF8.self)
                guard (try? await socket.send(.string(text))) != nil else { return }
                skipped = 0
                given += 1
            }
        }
        _ = try? await socket.send(
            .string(String(decoding: TapWriter.end(skipped: queue.skippedSinceLast), as: UTF8.self)))
    }
}

/// Which connections somebody is attached to: one at a time, as two would take each other's messages.
final class AttachedConnections: Sendable {
    private let keys = Mutex<Set<ConnectionKey>>([])

    func withLock<R: Sendable>(_ body: (inout sending Set<ConnectionKey>) -> sending R) -> R {
        self.keys.withLock { body(&$0) }
    }
}
