import GatewayCore
import SessionTasks
import StreamTransport

/// One tap on one connection, from its beginning to its end.
final class TapOpening: Sendable {
    /// Belongs to the connection's loop.
    private struct Held: @unchecked Sendable {
        let tap: TaskTap
    }

    /// Counts what passes, taken or left out. Belongs to the connection's loop.
    private final class Sequence {
        private var last: UInt64 = 0

        func stamp(_ piece: TapPiece) -> TapPiece {
            self.last += 1
            var piece = piece
            piece.number = self.last
            piece.at = Machine.wallClockMilliseconds()
            return piece
        }

        func skip(_ count: Int) { self.last += UInt64(count) }
    }

    private let link: TunnelLink
    private let queue: TapQueue
    private let held: Held

    init(_ link: TunnelLink, _ queue: TapQueue, pieceLimit: Int, sampling: Int) {
        self.link = link
        self.queue = queue
        let sequence = Sequence()
        self.held = Held(
            tap: TaskTap(
                pieceLimit: pieceLimit, sampling: sampling, hasRoom: { queue.hasRoom },
                take: { queue.put(sequence.stamp($0)) },
                skipped: { count in
                    sequence.skip(count)
                    queue.skip(count)
                }))
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
