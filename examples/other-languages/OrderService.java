package shop;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

@Service
public class OrderService {
    private final OrderMapper mapper;
    private final ObjectMapper json;

    public OrderService(OrderMapper mapper, ObjectMapper json) {
        this.mapper = mapper;
        this.json = json;
    }

    /** The order and the message about it: both, or neither. */
    @Transactional(rollbackFor = Exception.class) // without rollbackFor a checked exception commits
    public void place(Order order) throws JsonProcessingException {
        mapper.insertOrder(order);
        mapper.insertMessage("order.created", order.id(), "orders", json.writeValueAsString(order));
    }
}
