/// The members of a connection as they are shown, in their order; the names are those of the wire model.
package enum ConnectionField: String, CaseIterable, Sendable {
    case id, kind, direction, state, taskState, description, priority, url, listener, route, upstream
    case endpoint
    case tunnelPartner, peerAddress, clientAddress, localAddress, subprotocol, createdAt, openedAt
    case lastActivityAt, ageMs, idleMs, receivedBytes, sentBytes, receivedMessages, sentMessages
    case receivedFrames, sentFrames, queuedSendBytes, queuedReceiveBytes, unreadMessages, receiveStalledMs
    case sendStalledMs, stalled, suspended, relayed, inputClosed, outputClosed, ping, compression, tls
    case handshake, closeCode, closeReason, terminationReason, terminationDetail, closedAt, labels

    /// What `fields` asks for.
    /// - Throws: `ControlProblem` for a name that is none.
    package static func set(_ query: Query) throws(ControlProblem) -> Set<ConnectionField>? {
        let names = query.list("fields")
        guard !names.isEmpty else { return nil }
        var fields: Set<ConnectionField> = []
        for name in names {
            guard let field = ConnectionField(rawValue: name) else {
                throw ControlProblem(
                    400, "invalid-parameter",
                    "fields has \(name.prefix(64)), which a connection has not; it has "
                        + Self.allCases.map(\.rawValue).joined(separator: ", ") + "."
                ).at(parameter: "fields")
            }
            fields.insert(field)
        }
        return fields
    }
}
