/// Something with work left for the end of the turn: flushing what was written, telling what must not be told from
/// inside a call.
package protocol TurnEndTarget: AnyObject {
    func turnEnded()
    /// Called after `Loop.inNextTurn`. Does the same as `turnEnded` unless said otherwise.
    func nextTurnCame()
}

extension TurnEndTarget {
    package func nextTurnCame() {
        self.turnEnded()
    }
}
