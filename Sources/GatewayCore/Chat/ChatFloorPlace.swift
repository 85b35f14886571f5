/// Where a loop keeps its floor.
final class ChatFloorPlace {
    var floor: ChatFloor?
}
