/// Where a loop finds its floor, which the gateway's part on that loop keeps: a floor leads back to all loops.
final class ChatFloorPlace {
    weak var floor: ChatFloor?
}
