import GatewayCore

/// Writes events as JSON, in the form of the wire model.
package enum EventWriter {
    package static func json(_ event: GatewayEvent) -> [UInt8] {
        var text = JSONText(capacity: 256)
        text.beginObject()
        text.member("number", event.number)
        text.member("type", event.kind.rawValue)
        text.member("at", WallClock.text(milliseconds: event.at))
        text.member("connection", event.connection?.description)
        text.member("listener", event.listener)
        text.member("route", event.route)
        text.member("upstream", event.upstream)
        text.member("endpoint", event.endpoint)
        text.member("url", event.url)
        text.member("peerAddress", event.peer)
        text.member("reason", event.reason)
        text.member("detail", event.detail)
        text.member("closeCode", event.closeCode)
        text.member("closeReason", event.closeReason)
        text.member("receivedBytes", event.receivedBytes)
        text.member("sentBytes", event.sentBytes)
        text.member("labels", event.labels)
        text.member("count", event.count)
        text.member("drain", event.drain)
        text.member("transfer", event.transfer)
        text.endObject()
        return text.bytes
    }

    /// Stands for events that were missed; its number is that of the last of them.
    package static func gap(_ missed: ClosedRange<UInt64>) -> [UInt8] {
        var text = JSONText(capacity: 96)
        text.beginObject()
        text.member("number", missed.upperBound)
        text.member("type", "gap")
        text.member("missedFrom", missed.lowerBound)
        text.member("missedTo", missed.upperBound)
        text.endObject()
        return text.bytes
    }
}
