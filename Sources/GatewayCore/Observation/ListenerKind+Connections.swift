extension ListenerKind {
    /// What the connections of such a listener carry.
    var connectionKind: ConnectionKind {
        self.speaksWebSocket ? .webSocket : .stream
    }
}
