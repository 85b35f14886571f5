import SessionTasks

/// What several connections carried together.
package struct TrafficSums: Sendable {
    package var connections: UInt64 = 0
    package var bytesReceived: UInt64 = 0
    package var bytesSent: UInt64 = 0
    package var messagesReceived: UInt64 = 0
    package var messagesSent: UInt64 = 0
    package var framesReceived: UInt64 = 0
    package var framesSent: UInt64 = 0

    package init() {}

    package mutating func add(_ record: TaskRecord) {
        self.connections &+= 1
        self.bytesReceived &+= record.bytesReceived
        self.bytesSent &+= record.bytesSent
        self.messagesReceived &+= record.messagesReceived
        self.messagesSent &+= record.messagesSent
        self.framesReceived &+= record.framesReceived
        self.framesSent &+= record.framesSent
    }

    package mutating func add(_ other: TrafficSums) {
        self.connections &+= other.connections
        self.bytesReceived &+= other.bytesReceived
        self.bytesSent &+= other.bytesSent
        self.messagesReceived &+= other.messagesReceived
        self.messagesSent &+= other.messagesSent
        self.framesReceived &+= other.framesReceived
        self.framesSent &+= other.framesSent
    }
}
