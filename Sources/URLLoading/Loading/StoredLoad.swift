import Foundation
import HTTPTransport

/// Gives out an answer that is there already: as it is pulled, in pieces.
final class StoredLoad: Loader, @unchecked Sendable {
    private static let piece = 256 << 10

    private let data: Data
    private let transfer: Transfer
    private var position: Data.Index
    private var credit = 0
    private var isStopped = false
    private var isHeld = false
    private var isGiving = false

    init(_ data: Data, for transfer: Transfer) {
        self.data = data
        self.transfer = transfer
        self.position = data.startIndex
    }

    func start() {}
    func setPriority(_ priority: Float) {}

    func stop() { self.isStopped = true }

    func hold(_ isHeld: Bool) {
        self.isHeld = isHeld
        if !isHeld, self.credit > 0 { self.giveLater() }
    }

    func pull(_ count: Int) {
        let (sum, overflow) = self.credit.addingReportingOverflow(count)
        self.credit = overflow ? .max : sum
        self.giveLater()
    }

    private func giveLater() {
        guard !self.isGiving else { return }
        self.isGiving = true
        self.transfer.core.pool.executeLater { self.give() }
    }

    private func give() {
        self.isGiving = false
        while self.credit > 0, !self.isStopped, !self.isHeld {
            let rest = self.data[self.position...]
            guard !rest.isEmpty else {
                self.isStopped = true
                return self.transfer.finished()
            }
            let piece = Data(rest.prefix(min(self.credit, Self.piece)))
            self.position += piece.count
            if self.credit != .max { self.credit -= piece.count }
            self.transfer.received(piece, wireBytes: piece.count)
        }
    }
}
