import Foundation
import GatewayCore
import URLLoading

/// What is told of a transfer to those who follow events.
extension RunningTransfer {
    /// - Parameter attempt: from 1 up; 0 for one that ended before its first.
    func tell(_ kind: GatewayEvent.Kind, _ attempt: Int, reason: String? = nil, detail: String? = nil) {
        guard let journal = self.host.journal else { return }
        var event = GatewayEvent(kind)
        event.transfer = "\(self.number)"
        event.url = self.order.request.url?.absoluteString
        event.count = attempt
        event.reason = reason
        event.detail = detail
        journal.publish(event)
    }

    /// It is over: `finished`, `cancelled`, or the code of what went wrong.
    func tellEnd(_ state: borrowing State) {
        if let failure = state.failure {
            self.tell(.transferFailed, state.attempt, reason: failure.code, detail: failure.detail)
        } else {
            self.tell(.transferEnded, state.attempt, reason: state.stage.rawValue)
        }
    }
}
