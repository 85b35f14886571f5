import GatewayCore
import SessionTasks

/// One tap on one connection, from its beginning to its end.
final class TapOpening: Sendable {
    /// Belongs to the connection's loop.
    private struct Held: @unchecked Sendable {
        let tap: TaskTap
    }

    private let link: TunnelLink
    private let queue: TapQueue
    private let held: Held

    init(_ link: TunnelLink, _ queue: TapQueue, pieceLimit: Int, sampling: Int) {
        self.link = link
        self.queue = queue
        self.held = Held(
            tap: TaskTap(
                pieceLimit: pieceLimit, sampling: sampling, hasRoom: { queue.hasRoom }, take: { queue.put($0) },
                skipped: { queue.skip($0) }))
    }

    func begin() async {
        let (queue, held) = (self.queue, self.held)
        await self.link.onLoop { link in
            link.add(held.tap)
            switch link {
            case .stream(let task): task.whenEnded { _ in queue.finish() }
            case .webSocket(let task): task.whenEnded { _ in queue.finish() }
            }
        }
    }

    func end() async {
        let held = self.held
        await self.link.onLoop { $0.remove(held.tap) }
    }
}
